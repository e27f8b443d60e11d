/**
 * The rooms of docs/architecture.md and which may import which. An arrow that points another way fails `npm run lint`; so does a
 * circle, of types as well.
 */

/** Room → the rooms below it that it may import, beside `base`. `index.ts` is what the package exports: no room imports it. */
const ROOMS = {
  base: [],
  http: [],
  lease: [],
  config: [],
  filter: ['lease', 'http', 'config'],
  plugin: ['filter', 'config'],
  rules: ['filter', 'lease', 'config'],
  ledger: ['filter', 'lease', 'config'],
  openstack: ['filter', 'lease', 'http', 'config'],
  enforcement: ['openstack', 'ledger', 'plugin', 'filter', 'lease', 'http', 'config'],
  kubernetes: ['rules', 'filter', 'lease', 'config'],
  skypilot: ['enforcement', 'ledger', 'plugin', 'filter', 'lease', 'http', 'config'],
  decisions: ['skypilot', 'kubernetes', 'ledger', 'filter', 'lease', 'config'],
  server: [
    'decisions',
    'skypilot',
    'kubernetes',
    'rules',
    'enforcement',
    'openstack',
    'ledger',
    'filter',
    'lease',
    'http',
    'config',
  ],
  conformance: ['http'],
  client: ['enforcement', 'openstack'],
  cli: [
    'client',
    'server',
    'conformance',
    'decisions',
    'skypilot',
    'kubernetes',
    'rules',
    'enforcement',
    'openstack',
    'plugin',
    'ledger',
    'filter',
    'lease',
    'http',
    'config',
  ],
};

/** Folder of plug-ins → the room whose exports they see beside those of the package. */
const PLUGINS = { filters: 'kubernetes', policies: 'skypilot' };

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      comment: 'Files that import each other hold one idea between them.',
      from: {},
      to: { circular: true },
    },
    ...Object.entries(ROOMS).map(([room, below]) => ({
      name: `${room}-imports-what-is-below`,
      severity: 'error',
      comment:
        'Add a room to the list above only after you have drawn the new arrow into docs/architecture.md.',
      from: { path: `^src/${room}/` },
      to: { path: '^src/', pathNot: `^src/(${[...new Set(['base', room, ...below])].join('|')})/` },
    })),
    ...Object.entries(PLUGINS).flatMap(([folder, exporter]) => [
      {
        name: `src-names-no-file-of-${folder}`,
        severity: 'error',
        comment: 'Plug-ins are found by name; nothing in src/ may import one.',
        from: { path: '^src/' },
        to: { path: `^${folder}/` },
      },
      {
        name: `${folder}-import-what-the-package-exports`,
        severity: 'error',
        comment: 'A plug-in sees what the package exports, and no other plug-in.',
        from: { path: `^${folder}/` },
        to: {
          path: `^(src|${Object.keys(PLUGINS).join('|')})/`,
          pathNot: `^src/((${exporter}|rules)/)?index[.]ts$`,
        },
      },
    ]),
    {
      name: 'example-stands-alone',
      severity: 'error',
      comment: 'Third parties copy external-service-example: it may use packages and itself.',
      from: { path: '^external-service-example/' },
      to: { path: '^(src|filters|test|bench)/' },
    },
    {
      name: 'browser-stands-alone',
      severity: 'error',
      comment:
        'What runs in browsers is served file by file: it sees no other file of the project, and no package but uplot.',
      from: { path: '^src/server/console/browser/' },
      to: { pathNot: '(^src/server/console/browser|(^|/)node_modules/uplot)/' },
    },
    {
      name: 'browser-is-not-run-here',
      severity: 'error',
      comment: 'The service may know the types of what it gives to browsers, no more.',
      from: { path: '^src/', pathNot: '^src/server/console/browser/' },
      to: { path: '^src/server/console/browser/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nothing-ships-with-tests',
      severity: 'error',
      from: { path: '^(src|filters|policies|external-service-example)/' },
      to: { path: '^(test|bench)/' },
    },
    {
      name: 'no-dev-dependency-at-run-time',
      severity: 'error',
      from: { path: '^(src|filters|policies|external-service-example)/' },
      to: {
        dependencyTypes: ['npm-dev'],
        dependencyTypesNot: ['type-only'],
        pathNot: '^node_modules/@types/',
      },
    },
    {
      name: 'no-package-that-package-json-does-not-name',
      severity: 'error',
      comment: 'It is there because another package wants it, and goes when that one changes its mind.',
      from: { path: '^(src|filters|policies|external-service-example)/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'nothing-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^blazar-enforcement(/client|/skypilot|/kubernetes|/rules)?$' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
