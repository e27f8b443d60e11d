/**
 * `npm run dev`: compiles on every change and restarts the policy service. Arguments go to `serve`; without
 * any, it reads etc/policy-service.conf. The service itself reloads when its configuration changes.
 */
import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const COMPILED = /Found 0 errors?\. Watching for file changes/;

// Not `typescript`: that is version 6 for the layer rules, which need its API.
const tsc = fileURLToPath(new URL('../node_modules/typescript7/bin/tsc', import.meta.url));
const flags = process.argv.length > 2 ? process.argv.slice(2) : ['--config-file', 'etc/policy-service.conf'];

// The compiler does not copy data.
cpSync('src/skypilot/schema/data.json', 'dist/src/skypilot/schema/data.json');

const compiler = start([tsc, '-p', 'tsconfig.build.json', '--watch', '--preserveWatchOutput'], 'pipe');
let service;
compiler.stdout.setEncoding('utf8').on('data', (text) => {
  process.stdout.write(text);
  if (COMPILED.test(text)) {
    service ??= start(
      ['--watch', '--watch-preserve-output', 'dist/src/cli/main.js', 'serve', '--watch', ...flags],
      'inherit',
    );
  }
});

process.on('SIGINT', stop);
process.on('SIGTERM', stop);

/** Starts a process whose end also ends the other one. */
function start(args, stdout) {
  return spawn(process.execPath, args, { stdio: ['inherit', stdout, 'inherit'] }).on('close', stop);
}

function stop() {
  compiler.kill();
  service?.kill();
}
