/** Estimates a change of a lease: whether it would be allowed, its cost, and alternatives. */

import type { RecordedLease } from '../../../ledger/reports/one-lease.ts';
import { pathId } from '../../api/shown.ts';
import { changeableLease, changeRequest, changeTo } from '../../estimate/changed-lease.ts';
import { cloudOf, filterNow, notesOnChange } from '../../estimate/estimate-lease.ts';
import { UnusableLeaseError } from '../../estimate/wanted-lease.ts';
import { type ConsolePage, changePath, type PageAnswer, type PageRequest } from '../page.ts';
import { ChangeForm, Fields } from '../parts/fields.tsx';
import { Account, LeaseName, learnNames, ProjectLink, Small } from '../parts/parts.tsx';
import { type Shown, tried, tryPage } from '../try/try-answer.tsx';
import {
  changeCommand,
  changeOf,
  fieldOf,
  fieldsOf,
  formFields,
  type Values,
  valuesOf,
} from './change-form.ts';

export const CHANGE_PAGES: readonly ConsolePage[] = [
  {
    method: 'GET',
    path: '/leases/{lease_id}/change',
    action: 'estimate',
    answer: async (request) => {
      const lease = await leaseOf(request);
      return shown(request, lease, valuesOf(lease, request.query));
    },
  },
  {
    method: 'POST',
    path: '/leases/{lease_id}/change',
    action: 'estimate',
    answer: async (request) => {
      const lease = await leaseOf(request);
      const values = valuesOf(lease, request.form);
      const said = request.form.has('do') ? await answerTo(request, lease, values) : {};
      return shown(request, lease, values, said);
    },
  },
];

function leaseOf(request: PageRequest): Promise<RecordedLease> {
  return changeableLease(request, pathId(request.params, 'lease_id'));
}

async function answerTo(request: PageRequest, lease: RecordedLease, values: Values): Promise<Shown> {
  const { generation } = request;
  const read = changeOf(lease, values);
  if ('mistakes' in read) {
    return { mistakes: read.mistakes };
  }
  const { change } = read;
  if (Object.keys(change).length === 0) {
    return { error: 'Nothing is different: this is the lease as it is.' };
  }
  try {
    const whole = { reservations: [], ...change };
    const asked = changeRequest(lease, whole, cloudOf(generation), filterNow(generation));
    const command = changeCommand(lease.leaseId, changeTo(asked, asked.lease));
    const answer = await tried(request, {
      request: asked,
      what: 'change',
      action: changePath(lease.leaseId),
      howToGet: <HowToGet command={command} />,
      fieldsOf: (suggested) => Object.entries(fieldsOf(lease, suggested)),
    });
    return { answer, notes: notesOnChange(answer.estimate.charges) };
  } catch (thrown) {
    if (thrown instanceof UnusableLeaseError) {
      return { mistakes: new Map([[fieldOf(lease, change, thrown.field), thrown.message]]) };
    }
    throw thrown;
  }
}

function HowToGet({ command }: { readonly command: string }) {
  return (
    <>
      <p>In a shell, as a member of this project:</p>
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

async function shown(
  { csrf, generation }: PageRequest,
  lease: RecordedLease,
  values: Values,
  said: Shown = {},
): Promise<PageAnswer> {
  const { leaseId, name, projectId, userId } = lease;
  const { mistakes = new Map() } = said;
  await learnNames(generation, [lease]);
  return tryPage(
    {
      title: 'Change a lease',
      questions: ['What should be different?', 'Try another change'],
      about: (
        <p>
          <LeaseName name={name} /> <Small text={leaseId} look="id" /> of <Account kind="user" id={userId} />{' '}
          in <ProjectLink id={projectId} />
        </p>
      ),
      form: (
        <ChangeForm action={changePath(leaseId)} csrf={csrf}>
          <div class="fields">
            <Fields fields={formFields(lease, filterNow(generation))} values={values} mistakes={mistakes} />
          </div>
          <button type="submit" name="do" value="try">
            Try it
          </button>
        </ChangeForm>
      ),
    },
    said,
  );
}
