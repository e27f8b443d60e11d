/** Activity of a real PostgreSQL. */
import pg from 'pg';
import { onTestFinished } from 'vitest';

/** The state of the services' connections to a database, one text each. */
export async function backends(connection: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: connection });
  await client.connect();
  try {
    const { rows } = await client.query<{ state: string; query: string }>(
      `SELECT state, query FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'blazar-enforcement'`,
    );
    return rows.map(({ state, query }) => `${state}: ${query}`);
  } finally {
    await client.end();
  }
}

/** Locks the row of a project, like a slow transaction. Returns a function that releases it. */
export async function holdProject(connection: string, project: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: connection });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('BEGIN');
  const { rowCount } = await client.query('SELECT 1 FROM projects WHERE project_id = $1 FOR UPDATE', [
    project,
  ]);
  if (rowCount !== 1) {
    throw new Error('expected the project to be there');
  }
  return async () => {
    await client.query('ROLLBACK');
  };
}

/** One statement on a separate connection. */
export async function runSql(connection: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: connection });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}
