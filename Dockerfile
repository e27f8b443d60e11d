# The policy service in a container. docs/reference/policy-service.md#containers shows how to run it.
#
#   docker build --tag blazar-enforcement .
#   docker run --read-only --publish 8642:8642 --volume /etc/blazar:/etc/blazar:ro blazar-enforcement

# A supported LTS. 24 or newer, whose SQLite the ledger uses: --build-arg NODE_VERSION=26.10.0
ARG NODE_VERSION=24.21.0

# JavaScript is the same on every platform, so it is compiled once, on the platform of the builder.
FROM --platform=$BUILDPLATFORM node:${NODE_VERSION}-bookworm-slim AS compiled
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
COPY filters filters
COPY policies policies
COPY tools/merge-modules.js tools/
# Readable for everyone, whatever the modes of the copied files are.
RUN npm run build && find dist -name '*.map' -delete -o -name '*.d.ts' -delete && chmod -R a+rX dist

FROM node:${NODE_VERSION}-bookworm-slim AS root
WORKDIR /build
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund
COPY LICENSE etc/container/healthcheck.mjs etc/container/make-root.sh ./
RUN sh make-root.sh /image

FROM scratch
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="blazar-enforcement" \
      org.opencontainers.image.description="Usage enforcement for reservable clouds: who may lease what, for how long, how much." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.url="https://github.com/blazar-enforcement/blazar-enforcement" \
      org.opencontainers.image.source="https://github.com/blazar-enforcement/blazar-enforcement" \
      org.opencontainers.image.documentation="https://github.com/blazar-enforcement/blazar-enforcement/blob/main/docs/operations.md" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# The address inside the container, where variables override blazar.conf. --publish sets the port outside.
ENV PATH=/usr/local/bin:/usr/bin:/bin \
    NODE_ENV=production \
    OS_SERVICE__HOST=0.0.0.0 \
    OS_SERVICE__PORT=8642
WORKDIR /app
COPY --from=root /image /
COPY --from=compiled /build/dist dist
# A new volume that is mounted here belongs to the user, so that a ledger can be kept in it.
COPY --from=root --chown=65534:65534 /state /var/lib/blazar-enforcement
# nobody, as a number, so that Kubernetes can tell that it is not root. All other files belong to root.
USER 65534:65534
EXPOSE 8642
# It finishes requests under way for up to shutdown_grace seconds: give it more time than that to stop.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "/app/healthcheck.mjs"]
# Node is the first process, without a shell or npm in between, so that it gets the signals.
ENTRYPOINT ["node", "/app/dist/src/cli/main.js"]
CMD ["serve", "--config-file", "/etc/blazar/blazar.conf"]
