/** A SkyPilot server may keep its configuration in a database. Its address holds a password and is never shown. */
import type { Problem } from '../errors.ts';
import type { Source } from './config/levels.ts';

const VARIABLE = 'SKYPILOT_DB_CONNECTION_URI';

/**
 * The rule of SkyPilot: with a database, named by `db` or by the environment, its server refuses a file with more than one
 * other key. One other key is accepted, below what the database has.
 */
export function databaseProblems(
  { level, tree, originOf }: Source,
  environment: Readonly<NodeJS.ProcessEnv>,
): Problem[] {
  if (level !== 'server') {
    return [];
  }
  const inFile = isSet(tree.db);
  if (!inFile && !isSet(environment[VARIABLE])) {
    return [];
  }
  const origin = originOf(inFile ? ['db'] : []);
  const by = inFile ? 'db' : VARIABLE;
  const others = Object.keys(tree).filter((name) => name !== 'db');
  const overridden =
    'the configuration in the database of the server overrides this file, and is not shown here';
  const warning: Problem = { severity: 'warning', origin, message: `${by}: ${overridden}` };
  if (others.length < 2) {
    return [warning];
  }
  const message = `${by}: expected no other configuration beside a database, got ${others.join(', ')}; SkyPilot's server does not start`;
  return [{ severity: 'error', origin, message }];
}

/** As Python sees it. */
function isSet(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}
