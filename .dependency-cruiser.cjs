/**
 * The layers of docs/architecture.md. An arrow that points the wrong way fails `npm run lint`.
 *
 *   cli -> server -> skypilot, kubernetes -> core -> config      cli -> conformance -> core      filters -> kubernetes, core
 */
const CORE = '^src/((http|ledger|ledger/migrations)/)?[^/]+[.]ts$';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      severity: 'error',
      comment: 'A cycle means that two files hold one idea between them. Types may refer to each other.',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'core-names-no-filter',
      severity: 'error',
      comment: 'Filters are found by name; nothing in src/ may import one.',
      from: { path: '^src/' },
      to: { path: '^filters/' },
    },
    {
      name: 'config-stands-alone',
      severity: 'error',
      comment: 'Where option values come from does not depend on what they are for.',
      from: { path: '^src/config/' },
      to: { path: '^src/', pathNot: ['^src/config/', '^src/errors[.]ts$'] },
    },
    {
      name: 'core-knows-no-door',
      severity: 'error',
      comment: 'The library is used without a server and without a command line.',
      from: { path: CORE },
      to: { path: '^src/(skypilot|kubernetes|server|conformance|cli)/' },
    },
    {
      name: 'conformance-tests-strangers',
      severity: 'error',
      comment: 'It proves of our service what it proves of any other, and knows nothing of how ours is made.',
      from: { path: '^src/conformance/' },
      to: { path: '^src/', pathNot: ['^src/conformance/', CORE] },
    },
    {
      name: 'policies-know-no-door',
      severity: 'error',
      comment: 'Admin policies are reviewed without a server and without a command line.',
      from: { path: '^src/skypilot/' },
      to: { path: '^src/(kubernetes|server|conformance|cli)/' },
    },
    {
      name: 'scheduling-policies-know-no-door',
      severity: 'error',
      comment: 'They judge pods and leases without a server and without a command line.',
      from: { path: '^src/kubernetes/' },
      to: { path: '^src/(skypilot|server|conformance|cli)/' },
    },
    {
      name: 'server-knows-no-command-line',
      severity: 'error',
      from: { path: '^src/server/' },
      to: { path: '^src/(cli|conformance)/' },
    },
    {
      name: 'filters-import-the-core-only',
      severity: 'error',
      comment: 'A filter is a plug-in: it sees what the package exports, and no other filter.',
      from: { path: '^filters/' },
      to: { path: '^(src|filters)/', pathNot: '^src/(kubernetes/)?index[.]ts$' },
    },
    {
      name: 'example-stands-alone',
      severity: 'error',
      comment: 'external-service-example is copied by third parties: it may use packages and itself.',
      from: { path: '^external-service-example/' },
      to: { path: '^(src|filters|test|bench)/' },
    },
    {
      name: 'nothing-ships-with-tests',
      severity: 'error',
      from: { path: '^(src|filters|external-service-example)/' },
      to: { path: '^(test|bench)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-dev-dependency-at-run-time',
      severity: 'error',
      from: { path: '^(src|filters|external-service-example)/' },
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
      from: { path: '^(src|filters|external-service-example)/' },
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'nothing-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^blazar-enforcement(/skypilot|/kubernetes)?$' },
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
