/** `conformance`: tests whether a policy service implements the protocol. */
import { Command, Option } from 'commander';
import type { CheckResult } from '../conformance/check.ts';
import type { ConformanceOptions, ConformanceReport } from '../conformance/run.ts';
import type { Operation } from '../conformance/target.ts';
import {
  ExitCode,
  fail,
  printJson,
  printTable,
  refuseStandardInputTwice,
  UsageError,
  warn,
} from './common/output.ts';
import { Progress } from './common/progress.ts';
import { readRequest } from './common/requests.ts';
import { formatFlag } from './common/sources.ts';

interface ConformanceFlags {
  readonly token?: string;
  readonly bearer?: string;
  readonly createEndpoint?: string;
  readonly updateEndpoint?: string;
  readonly endEndpoint?: string;
  readonly commitCreateEndpoint?: string;
  readonly commitUpdateEndpoint?: string;
  readonly timeout: string;
  readonly allowLease?: string;
  readonly denyLease?: string;
  readonly denyUpdate?: string;
  readonly denyCommit?: string;
  readonly format: 'table' | 'json' | 'junit';
}

const MAX_TIMEOUT_SECONDS = 3600;
const MAX_REQUEST_BYTES = 1_048_576;

export function conformanceCommand(): Command {
  return new Command('conformance')
    .description(
      'Test whether a policy service speaks the protocol of ExternalServiceFilter. Exit code: 0 no check failed, 1 a check failed or there is no service, 2 a mistake in the command.',
    )
    .argument(
      '[url]',
      'Base URL of the service; check-create, check-update and on-end are appended to its path.',
    )
    .addOption(
      new Option(
        '--token <token>',
        'Token to send as X-Auth-Token. Prefer the variable: ps shows flags.',
      ).env('BLAZAR_ENFORCEMENT_TOKEN'),
    )
    .addOption(
      new Option('--bearer <token>', 'Token to send as Authorization: Bearer.').env(
        'BLAZAR_ENFORCEMENT_BEARER',
      ),
    )
    .option('--create-endpoint <url>', 'URL of check-create, instead of the one made from the base URL.')
    .option('--update-endpoint <url>', 'URL of check-update, instead of the one made from the base URL.')
    .option('--end-endpoint <url>', 'URL of on-end, instead of the one made from the base URL.')
    .option('--commit-create-endpoint <url>', 'URL of commit-create; never made from the base URL.')
    .option('--commit-update-endpoint <url>', 'URL of commit-update; never made from the base URL.')
    .option('--timeout <seconds>', 'Maximum time for an answer, from connecting to its last byte.', '10')
    .option('--allow-lease <file>', 'The JSON body of a check-create that must be allowed.')
    .option('--deny-lease <file>', 'The JSON body of a check-create that must be rejected.')
    .option('--deny-update <file>', 'The JSON body of a check-update that must be rejected.')
    .option('--deny-commit <file>', 'The JSON body of a commit-create that must be rejected.')
    .addOption(formatFlag('table', 'json', 'junit'))
    .action(conformance);
}

async function conformance(url: string | undefined, flags: ConformanceFlags): Promise<void> {
  refuseStandardInputTwice([flags.allowLease, flags.denyLease, flags.denyUpdate, flags.denyCommit]);
  const options: ConformanceOptions = {
    endpoints: await endpoints(url, flags),
    credentials: {
      token: token('--token (BLAZAR_ENFORCEMENT_TOKEN)', flags.token),
      bearer: token('--bearer (BLAZAR_ENFORCEMENT_BEARER)', flags.bearer),
    },
    timeout: timeout(flags.timeout),
    allowLease: await request(flags.allowLease, 'create'),
    denyLease: await request(flags.denyLease, 'create'),
    denyUpdate: await request(flags.denyUpdate, 'update'),
    denyCommit: await request(flags.denyCommit, 'create'),
  };
  const { CHECKS, runConformance } = await import('../conformance/run.ts');
  const { UnreachableError } = await import('../conformance/target.ts');
  const progress = new Progress('checks', CHECKS.length);
  try {
    const report = await runConformance({ ...options, progress: (done) => progress.show(done) });
    progress.end();
    await print(report, flags.format);
    process.exitCode = report.results.some(({ result }) => result === 'failed')
      ? ExitCode.rejected
      : ExitCode.ok;
  } catch (thrown) {
    progress.end();
    if (!(thrown instanceof UnreachableError)) {
      throw thrown;
    }
    fail(thrown.message, ExitCode.rejected);
  }
}

async function endpoints(
  url: string | undefined,
  flags: ConformanceFlags,
): Promise<ConformanceOptions['endpoints']> {
  const { ENDPOINT_FLAGS } = await import('../conformance/target.ts');
  const { endpointBelow } = await import('../filter/service-options.ts');
  const base = url === undefined ? undefined : parseUrl('URL', url);
  const one = (operation: Operation, given: string | undefined, name?: string) => {
    const value = given ?? (name === undefined ? undefined : endpointBelow(base?.href, name));
    return value === undefined ? undefined : parseUrl(ENDPOINT_FLAGS[operation], value);
  };
  const found = {
    create: one('create', flags.createEndpoint, 'check-create'),
    update: one('update', flags.updateEndpoint, 'check-update'),
    end: one('end', flags.endEndpoint, 'on-end'),
    commitCreate: one('commitCreate', flags.commitCreateEndpoint),
    commitUpdate: one('commitUpdate', flags.commitUpdateEndpoint),
  };
  if (Object.values(found).every((endpoint) => endpoint === undefined)) {
    throw new UsageError('expected the URL of a policy service, or one of its endpoints');
  }
  return found;
}

/** The error does not repeat the value: it may contain a password. */
function parseUrl(flag: string, value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const credentials = url !== undefined && (url.username !== '' || url.password !== '');
  if (url === undefined || credentials || !/^https?:\/\/[^/?#\s]/i.test(value)) {
    throw new UsageError(`${flag}: expected an http or https URL with a host and without credentials`);
  }
  return url;
}

function token(flag: string, value: string | undefined): string | undefined {
  if (value !== undefined && !/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
    throw new UsageError(`${flag}: expected ASCII text without line breaks that is not empty`);
  }
  return value;
}

function timeout(value: string): number {
  const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) : 0;
  if (seconds <= 0 || seconds > MAX_TIMEOUT_SECONDS) {
    throw new UsageError(
      `--timeout: expected a number of seconds above 0 and up to ${MAX_TIMEOUT_SECONDS}, got ${JSON.stringify(value)}`,
    );
  }
  return seconds;
}

/** The text of a file with a `check-create` or a `check-update`. */
async function request(file: string | undefined, kind: 'create' | 'update'): Promise<string | undefined> {
  return file === undefined ? undefined : (await readRequest(file, kind, MAX_REQUEST_BYTES)).text;
}

async function print(report: ConformanceReport, format: ConformanceFlags['format']): Promise<void> {
  if (format === 'json') {
    const { jsonOf } = await import('../conformance/report.ts');
    report.results.map(jsonOf).forEach(printJson);
  } else if (format === 'junit') {
    const { junitOf } = await import('../conformance/report.ts');
    process.stdout.write(`${junitOf(report.results)}\n`);
  } else {
    await printResults(report);
  }
  if (report.notEnded > 0) {
    warn(`the service has allowed ${report.notEnded} leases whose end could not be reported`);
  }
}

async function printResults({ results, requests }: ConformanceReport): Promise<void> {
  const { detailsOf } = await import('../conformance/report.ts');
  await printTable(
    ['CHECK', 'RESULT', 'WHAT IT PROVES'],
    results.flatMap((result) => [
      [result.check.id, result.result, result.reason ?? result.check.title],
      ...(result.result === 'failed'
        ? detailsOf(result).map(([label, text]) => ['', `  ${label}`, text])
        : []),
    ]),
  );
  const count = (word: CheckResult['result']) => results.filter(({ result }) => result === word).length;
  process.stdout.write(
    `\n${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped; ${requests} requests\n`,
  );
}
