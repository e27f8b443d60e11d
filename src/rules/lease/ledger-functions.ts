/** Functions that read the ledger. They answer for the project of the request alone, the one that the ledger locks. */
import { Failure } from '../cel/failure.ts';
import type { Frame } from '../cel/frame.ts';
import type { DocumentedFunction } from './functions.ts';
import type { LedgerView } from './ledger-view.ts';
import { ProjectView } from './request-view.ts';

/** Signatures, and what they do. */
export const LEDGER_FUNCTIONS: readonly (readonly [string | readonly string[], DocumentedFunction])[] = [
  reading(
    'leases',
    'int',
    'The pending and active leases of the project, without this one.',
    ({ leases }) => leases,
  ),
  reading(
    'taken',
    'double',
    'What other leases have taken of the budget of the project that is valid at the start of the lease, such as node-hours.',
    ({ taken }) => taken,
  ),
  reading(
    'left',
    'double',
    'What other leases leave of that budget. Fails if there is none.',
    ({ left }) => left ?? new Failure('the project has no budget at the start of the lease'),
  ),
].flat();

function reading(
  name: string,
  type: string,
  description: string,
  read: (ledger: LedgerView) => unknown,
): readonly (readonly [string, DocumentedFunction])[] {
  const run = ({ activation }: Frame) => {
    const { ledger } = activation as { readonly ledger?: LedgerView | undefined };
    return ledger === undefined ? new Failure(`${name}() needs a ledger`) : read(ledger);
  };
  return [
    [`${name}(): ${type}`, { description, readsLedger: true, run }],
    [
      `${name}(Project): ${type}`,
      {
        description: `The same; the project is always \`context.project\`.`,
        readsLedger: true,
        run: (frame, project) =>
          project instanceof ProjectView ? run(frame) : new Failure(`${name}() needs a project`),
      },
    ],
  ];
}
