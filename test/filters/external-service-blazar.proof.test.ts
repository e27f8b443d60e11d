/** Calls Blazar's own ExternalServiceFilter, to check that almost-http.ts records correctly which answers it accepts. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { RAW_ANSWERS } from '../support/almost-http.ts';
import { jsonLines } from '../support/json-lines.ts';
import { peerProgram, skipAloud } from '../support/peers.ts';
import { startTcpService } from '../support/services.ts';

const run = promisify(execFile);

/** Calls each URL of the command line, and prints a line for each. */
const ASK = `
import json, sys
from oslo_config import cfg
sys.path.insert(0, sys.argv[1])
from blazar.enforcement.exceptions import ExternalServiceFilterException
from blazar.enforcement.filters.external_service_filter import ExternalServiceFilter

def outcome(url):
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    ExternalServiceFilter.register_opts(conf)
    conf.set_override('external_service_base_endpoint', url, group='enforcement')
    try:
        ExternalServiceFilter(conf=conf).check_create({}, {})
        return 'yes'
    except ExternalServiceFilterException as error:
        return 'no: %s' % error
    except Exception as error:
        print(url, repr(error), file=sys.stderr)
        return 'broken'

for url in sys.argv[2:]:
    print(json.dumps(outcome(url)))
`;
const PYTHON = '/usr/bin/python3';

/** The folder with the source of Blazar, or why it is missing. */
async function source(): Promise<{ folder: string } | { why: string }> {
  const program = peerProgram('BLAZAR_PEER');
  if (program === undefined) {
    return { why: '' };
  }
  const folder = mkdtempSync(join(tmpdir(), 'blazar-source-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const archive = readdirSync(dirname(program)).find((name) => name.endsWith('.tar.xz')) ?? 'blazar.tar.xz';
  try {
    await run('tar', ['xJf', join(dirname(program), archive), '-C', folder]);
    await run(PYTHON, ['-c', ASK, folder]);
    return { folder };
  } catch (thrown) {
    const why = String(thrown).trim().split('\n').at(-1) ?? 'it could not be loaded';
    skipAloud('BLAZAR_PEER', why);
    return { why };
  }
}

const blazar = await source();

describe.skipIf('why' in blazar)("Blazar's own ExternalServiceFilter", () => {
  it('accepts and refuses answers as recorded', async () => {
    const services = await Promise.all(
      RAW_ANSWERS.map(({ bytes }) =>
        startTcpService((socket) => {
          // The head and the body of a request arrive separately; a body ends with a brace.
          socket.on('data', (data) => data.toString().endsWith('}') && socket.end(bytes));
        }),
      ),
    );
    const urls = services.map(({ url }) => new URL('/', url).href);
    const { stdout } = await run(PYTHON, ['-c', ASK, 'folder' in blazar ? blazar.folder : '', ...urls]);
    const outcomes: unknown[] = jsonLines(stdout);
    expect(RAW_ANSWERS.map(({ name }, index) => [name, outcomes[index]])).toEqual(
      RAW_ANSWERS.map(({ name, blazar: recorded }) => [name, recorded]),
    );
  });
});
