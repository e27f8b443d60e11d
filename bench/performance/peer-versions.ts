/** Names and versions of the peers in comparisons. */
import { execFileSync } from 'node:child_process';
import { PGBENCH } from '../ledger-pgbench.ts';
import { blazarVersion } from '../peers/blazar-source.ts';
import { packageVersionOf } from './machine.ts';

const ofPackage = (name: string) => () => `${name} ${packageVersionOf(name)}`;
const ofNode = () => `Node.js ${process.versions.node}`;

/** The side of a comparison, and the peer's name and version; the first match counts. */
const PEERS: readonly (readonly [RegExp, () => string | undefined])[] = [
  [/^upstream\b/, blazarVersion],
  [/^pgbench\b/, pgbenchVersion],
  [/^cedar-wasm\b/, ofPackage('@cedar-policy/cedar-wasm')],
  [/^casbin\b/, ofPackage('casbin')],
  [/^cel-js\b/, ofPackage('@marcbachmann/cel-js')],
  [/\bbetter-sqlite3\b/, ofPackage('better-sqlite3')],
  [/^pg alone\b/, ofPackage('pg')],
  [/^Koa\b/, ofPackage('koa')],
  [/^axios\b/, ofPackage('axios')],
  [/^yaml\b/, ofPackage('yaml')],
  [/^node:http\b|\bJSON\.parse\b|^node -e\b/, ofNode],
];

/** `undefined` = compared with ourselves, or with a limit. */
export function peerOf(comparedWith: string): string | undefined {
  return PEERS.find(([pattern]) => pattern.test(comparedWith))?.[1]();
}

function pgbenchVersion(): string | undefined {
  try {
    const said = execFileSync(PGBENCH, ['--version'], { encoding: 'utf8' });
    return /\d[\d.]*/.exec(said)?.[0].replace(/^/, 'pgbench ');
  } catch {
    return undefined;
  }
}
