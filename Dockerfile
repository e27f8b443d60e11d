# The policy service in a container. docs/operations.md shows how to run it.
#
#   docker build --tag blazar-enforcement .
#   docker run --read-only --publish 8642:8642 --volume /etc/blazar:/etc/blazar:ro blazar-enforcement

# A supported LTS. The package needs Node.js 20.19 or newer: --build-arg NODE_VERSION=26.10.0
ARG NODE_VERSION=24.21.0

FROM node:${NODE_VERSION}-bookworm-slim AS build
WORKDIR /build
# For SQLite, which is compiled where no binary for this Node.js can be downloaded.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ make python3 && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY filters filters
COPY policies policies
COPY tools/merge-modules.js tools/
COPY LICENSE etc/container/healthcheck.mjs ./
# Readable for everyone, whatever the modes of the copied files are.
RUN npm run build && npm prune --omit=dev --no-audit --no-fund && chmod -R a+rX .

FROM node:${NODE_VERSION}-bookworm-slim
LABEL org.opencontainers.image.title="blazar-enforcement" \
      org.opencontainers.image.description="Usage enforcement for reservable clouds: who may lease what, for how long, how much." \
      org.opencontainers.image.licenses="Apache-2.0"
# The address inside the container, where variables override blazar.conf. --publish sets the port outside.
ENV NODE_ENV=production \
    OS_SERVICE__HOST=0.0.0.0 \
    OS_SERVICE__PORT=8642
WORKDIR /app
COPY --from=build /build/package.json /build/LICENSE /build/healthcheck.mjs ./
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
# nobody, as a number, so that Kubernetes can tell that it is not root. All files above belong to root, and nothing is written.
USER 65534:65534
EXPOSE 8642
# It finishes requests under way for up to shutdown_grace seconds: give it more time than that to stop.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "/app/healthcheck.mjs"]
# Node is the first process, without a shell or npm in between, so that it gets the signals.
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["serve", "--config-file", "/etc/blazar/blazar.conf"]
