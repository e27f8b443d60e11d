/** What `--replay` and `--record` have in common: the configuration, and the decisions of the logs. */
import type { ConfigSources } from '../../config/sources.ts';
import { requireConfiguration } from '../../enforcement/configuration.ts';
import { Rehearsal } from '../../enforcement/rehearsal.ts';
import { causeLogger } from '../cases/cause-logger.ts';
import { UsageError } from '../output.ts';
import { Progress } from '../progress.ts';
import { type SourceFlags, sourcesOf } from '../sources.ts';
import { parseTime } from '../times.ts';
import type { Notes } from './judge-again.ts';
import { LogDecisions } from './log-decisions.ts';
import { type LogFile, logFiles } from './log-files.ts';
import type { LogSelection } from './log-selection.ts';
import type { PastDecision } from './past-decision.ts';
import type { LogFlags } from './replay-flags.ts';

export interface LogRun {
  readonly rehearsal: Rehearsal;
  readonly notes: Notes;
  readonly decisions: LogDecisions;
  /** Calls `take` with each selected decision, and shows how far it is. @throws UsageError */
  each(take: (past: PastDecision) => Promise<void> | undefined): Promise<void>;
  close(): Promise<void>;
}

/** @throws UsageError, ConfigurationError */
export async function openLogRun(
  logs: readonly string[],
  folders: readonly string[],
  flags: LogFlags & SourceFlags,
): Promise<LogRun> {
  const files = namedLogs(logs, folders);
  const decisions = new LogDecisions(files, selectionOf(flags));
  const { rehearsal, notes } = await openRehearsal(sourcesOf(flags));
  return {
    ...{ rehearsal, notes, decisions },
    async each(take) {
      const progress = new Progress('decisions', sizeOf(files));
      let taken = 0;
      try {
        await decisions.each(
          (past) => {
            taken += 1;
            return take(past);
          },
          () => progress.show(decisions.bytes, taken),
        );
      } finally {
        progress.end();
      }
    },
    close: () => rehearsal.close(),
  };
}

/** @throws UsageError */
function namedLogs(logs: readonly string[], folders: readonly string[]): LogFile[] {
  const [first] = folders;
  if (first !== undefined) {
    throw new UsageError(`${first}: expected no folder beside a decision log: repeat the flag for more logs`);
  }
  return logFiles(logs);
}

/** @throws UsageError */
function selectionOf(flags: LogFlags): LogSelection {
  const now = Date.now();
  return {
    projects: flags.project && new Set(flags.project),
    users: flags.user && new Set(flags.user),
    since: flags.since === undefined ? undefined : parseTime('--since', flags.since, now),
    until: flags.until === undefined ? undefined : parseTime('--until', flags.until, now),
  };
}

/** In bytes; `undefined` = not known. */
function sizeOf(files: readonly LogFile[]): number | undefined {
  return files.reduce<number | undefined>(
    (sum, { size }) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  );
}

/** @throws ConfigurationError */
export async function openRehearsal(sources: ConfigSources): Promise<Pick<LogRun, 'rehearsal' | 'notes'>> {
  const { SECTIONS } = await import('../../server/configuration/sections.ts');
  const configuration = await requireConfiguration(sources, SECTIONS);
  const notes: Notes = { refusing: [], causes: [] };
  const rehearsal = await Rehearsal.open(configuration, {
    logger: causeLogger(notes.causes),
    ruleObserver: {
      rulesRead: () => {},
      ruleJudged: (rule, said) => {
        if (said === 'refused' && !rule.audit && !notes.refusing.includes(rule)) {
          notes.refusing.push(rule);
        }
      },
    },
  });
  return { rehearsal, notes };
}
