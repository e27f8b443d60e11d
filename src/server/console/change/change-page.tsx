/** "A day longer?": whether a change of a lease would be allowed, what it would cost, and what would be allowed instead. */

import { budgetUnit } from '../../../enforcement/configuration.ts';
import type { RecordedLease } from '../../../ledger/reports/one-lease.ts';
import { pathId } from '../../api/shown.ts';
import { changeableLease, changeRequest, changeTo } from '../../estimate/changed-lease.ts';
import { cloudOf, filterNow, memberEstimate, notesOnChange } from '../../estimate/estimate-lease.ts';
import { UnusableLeaseError } from '../../estimate/wanted-lease.ts';
import { type ConsolePage, changePath, type PageAnswer, type PageRequest, projectPath } from '../page.ts';
import { ChangeForm, Fields } from '../parts/fields.tsx';
import { Account, LeaseName, learnNames, Message, Small } from '../parts/parts.tsx';
import { chargedTo, TryAnswer, type TryAnswerProps } from '../try/try-answer.tsx';
import {
  changeCommand,
  changeOf,
  fieldOf,
  fieldsOf,
  formFields,
  type Values,
  valuesOf,
} from './change-form.ts';

const NO_MISTAKES: ReadonlyMap<string, string> = new Map();

export const CHANGE_PAGES: readonly ConsolePage[] = [
  {
    ...{ method: 'GET', path: '/leases/{lease_id}/change', action: 'estimate' },
    answer: async (request) => {
      const lease = await leaseOf(request);
      return shown(request, lease, valuesOf(lease, request.query), {});
    },
  },
  {
    ...{ method: 'POST', path: '/leases/{lease_id}/change', action: 'estimate' },
    answer: async (request) => {
      const lease = await leaseOf(request);
      const values = valuesOf(lease, request.form);
      return request.form.has('do') ? tried(request, lease, values) : shown(request, lease, values, {});
    },
  },
];

function leaseOf(request: PageRequest): Promise<RecordedLease> {
  return changeableLease(request, pathId(request.params, 'lease_id'));
}

async function tried(request: PageRequest, lease: RecordedLease, values: Values): Promise<PageAnswer> {
  const { caller, generation, deadline, requestId, csrf } = request;
  const { enforcement, configuration } = generation;
  const read = changeOf(lease, values);
  if ('mistakes' in read) {
    return shown(request, lease, values, { mistakes: read.mistakes });
  }
  const { change } = read;
  if (Object.keys(change).length === 0) {
    return shown(request, lease, values, { error: 'Nothing is different: this is the lease as it is.' });
  }
  try {
    const asked = changeRequest(
      lease,
      { reservations: [], ...change },
      cloudOf(generation),
      filterNow(generation),
    );
    // As for Blazar, which cannot take a changed lease.
    const how = { deadline, requestId, acceptsChanges: false };
    const all = await enforcement.estimate(asked, how);
    const estimate = caller.kind === 'member' ? memberEstimate(all) : all;
    const answer: TryAnswerProps = {
      ...{ estimate, csrf, what: 'change', action: changePath(lease.leaseId) },
      unit: budgetUnit(configuration),
      howToGet: <HowToGet command={changeCommand(lease.leaseId, changeTo(asked, asked.lease))} />,
      wishes: estimate.suggestions.map((one) => Object.entries(fieldsOf(lease, one.lease))),
      accountText: await chargedTo(request, lease.projectId, estimate),
    };
    return shown(request, lease, values, { answer, notes: notesOnChange(estimate.charges) });
  } catch (thrown) {
    if (thrown instanceof UnusableLeaseError) {
      const mistakes = new Map([[fieldOf(lease, change, thrown.field), thrown.message]]);
      return shown(request, lease, values, { mistakes });
    }
    throw thrown;
  }
}

function HowToGet({ command }: { readonly command: string }) {
  return (
    <>
      <p>In a shell, as somebody in this project:</p>
      <pre class="command">{command}</pre>
      {command.includes('RESERVATION_ID') && (
        <p class="hint">
          In place of RESERVATION_ID put the id of the reservation:{' '}
          <code>openstack reservation lease show</code> prints it.
        </p>
      )}
    </>
  );
}

interface Shown {
  readonly answer?: TryAnswerProps;
  readonly notes?: readonly string[];
  readonly mistakes?: ReadonlyMap<string, string>;
  readonly error?: string;
}

async function shown(
  { csrf, generation }: PageRequest,
  lease: RecordedLease,
  values: Values,
  { answer, notes = [], mistakes = NO_MISTAKES, error }: Shown,
): Promise<PageAnswer> {
  const { leaseId, name, projectId, userId } = lease;
  await learnNames(generation, [projectId], [userId]);
  const verdict = answer && (answer.estimate.decision.allowed ? 'Allowed' : 'Refused');
  const hasMistake = mistakes.size > 0 || error !== undefined;
  return {
    status: hasMistake ? 400 : 200,
    title: `Change a lease${verdict === undefined ? '' : `: ${verdict}`}`,
    main: (
      <>
        <p>
          <LeaseName name={name} /> <Small text={leaseId} look="id" /> of <Account kind="user" id={userId} />{' '}
          in{' '}
          <a href={projectPath(projectId)}>
            <Account kind="project" id={projectId} />
          </a>
        </p>
        {hasMistake && <Message kind="error">{error ?? 'A field needs another value: see below.'}</Message>}
        {answer !== undefined && <TryAnswer {...answer} />}
        {notes.map((note) => (
          <p class="hint">{note}</p>
        ))}
        <section aria-labelledby="change-form">
          <h2 id="change-form">
            {answer === undefined ? 'What should be different?' : 'Try another change'}
          </h2>
          <p class="hint">
            Every filter is asked, as for a real change. Nothing is recorded. All times are in UTC.
          </p>
          <ChangeForm action={changePath(leaseId)} csrf={csrf}>
            <div class="fields">
              <Fields fields={formFields(lease, filterNow(generation))} {...{ values, mistakes }} />
            </div>
            <button type="submit" name="do" value="try">
              Try it
            </button>
          </ChangeForm>
        </section>
      </>
    ),
  };
}
