# The policy service in a container: docs/operations.md.
#
#   docker build --tag blazar-enforcement .
#   docker run --read-only --publish 8642:8642 --volume /etc/blazar:/etc/blazar:ro blazar-enforcement

# The oldest Node.js that this package needs; newer ones do as well: --build-arg NODE_VERSION=24.21.0
ARG NODE_VERSION=20.20.2

FROM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /build
# SQLite is compiled where there is nothing compiled for this Node.js.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ make python3 && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY filters filters
COPY LICENSE etc/container/healthcheck.mjs ./
# Readable for everyone, whatever the modes of the files were where they came from.
RUN npm run build && npm prune --omit=dev --no-audit --no-fund && chmod -R a+rX .

FROM node:${NODE_VERSION}-bookworm-slim
LABEL org.opencontainers.image.title="blazar-enforcement" \
      org.opencontainers.image.description="Usage enforcement for reservable clouds: who may lease what, for how long, how much." \
      org.opencontainers.image.licenses="Apache-2.0"
# Inside, it always listens here; which port it has outside says --publish. As variables they are over those of blazar.conf.
ENV NODE_ENV=production \
    OS_SERVICE__HOST=0.0.0.0 \
    OS_SERVICE__PORT=8642
WORKDIR /app
COPY --from=build /build/package.json /build/LICENSE /build/healthcheck.mjs ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
# nobody, as a number: Kubernetes can tell that it is not root. All of the above belongs to root, and nothing is written.
USER 65534:65534
EXPOSE 8642
# It finishes what is under way, for as long as shutdown_grace says: stop it with more time than that.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "/app/healthcheck.mjs"]
# Node itself is the first process, so that signals reach it: no shell and no npm between.
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["serve", "--config-file", "/etc/blazar/blazar.conf"]
