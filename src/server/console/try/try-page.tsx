/** "Try a lease": estimates a lease: whether it would be allowed, its cost, and alternatives. */

import { InvalidRequestError } from '../../../base/errors.ts';
import { RESOURCE_TYPES } from '../../../config/names.ts';
import type { Instant } from '../../../lease/dates.ts';
import { ApiError } from '../../api/route.ts';
import { accountId } from '../../budgets/named-accounts.ts';
import type { Generation } from '../../configuration/generation.ts';
import { filterNow } from '../../estimate/estimate-lease.ts';
import { type Caller, may } from '../../users/caller.ts';
import { decisionsOf } from '../decisions/found-decisions.ts';
import type { ConsolePage, PageAnswer, PageRequest } from '../page.ts';
import { nameOfFor } from '../parts/parts.tsx';
import { leaseCommand } from './client-syntax.ts';
import {
  formOfLease,
  formOfReservation,
  type LeaseForm,
  leaseFormFields,
  local,
  MOST_RESERVATIONS,
  newReservation,
  readLeaseForm,
} from './lease-form.ts';
import { leaseOf, type WantedLease } from './lease-of-form.ts';
import { type Shown, tried, tryPage } from './try-answer.tsx';
import { TryForm } from './try-form.tsx';

const HOUR: Instant = 3_600_000_000n;

/** In bytes: all fields at their maximum length. */
const FORM_LIMIT = 131_072;
const page = { path: '/try', action: 'estimate' } as const;

export const TRY_PAGES: readonly ConsolePage[] = [
  {
    ...page,
    method: 'GET',
    label: 'Try a lease',
    answer: async (request) => {
      const { query, caller, generation } = request;
      const types = typesOf(generation);
      const linked = readLeaseForm(query, types);
      const refused = linked.reservations.length > 0 ? undefined : await refusedReservations(request, types);
      const wish = { ...linked, reservations: refused?.reservations ?? linked.reservations };
      return shown(request, withDefaults(wish, caller, filterNow(generation)), { notice: refused?.notice });
    },
  },
  {
    ...page,
    method: 'POST',
    formLimit: FORM_LIMIT,
    answer: async (request) => {
      const { form, generation } = request;
      const leaseForm = readLeaseForm(form, typesOf(generation));
      const { reservations } = leaseForm;
      const [what, argument = ''] = (form.get('do') ?? 'try').split(/ (.*)/s);
      if (what === 'add' && typesOf(generation).includes(argument)) {
        return shown(request, { ...leaseForm, reservations: [...reservations, newReservation(argument)] });
      }
      if (what === 'remove') {
        const others = reservations.filter((_, index) => String(index) !== argument);
        return shown(request, { ...leaseForm, reservations: others });
      }
      return shown(request, leaseForm, await answerTo(request, leaseForm));
    },
  },
];

async function answerTo(request: PageRequest, leaseForm: LeaseForm): Promise<Shown> {
  const { caller, generation } = request;
  const { leaseForm: known, mistakes: unknown } = await withIds(leaseForm, request);
  const wanted = leaseOf(known, filterNow(generation));
  const mistakes = new Map([...unknown, ...('mistakes' in wanted ? wanted.mistakes : [])]);
  if ('mistakes' in wanted || mistakes.size > 0) {
    return { mistakes };
  }
  const { lease } = wanted;
  if (!may(caller, 'estimate', known.project)) {
    // The same whether or not the project exists.
    return { mistakes: new Map([['project', 'expected one of your projects']]), status: 403 };
  }
  try {
    const answer = await tried(request, {
      request: { context: { user_id: known.user, project_id: known.project }, lease },
      what: 'lease',
      action: '/try',
      howToGet: <HowToGet wanted={wanted} />,
      fieldsOf: (suggested) => leaseFormFields(formOfLease(suggested, leaseForm, lease)),
    });
    return { answer };
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return { error: `The lease cannot be checked: ${thrown.message}` };
    }
    throw thrown;
  }
}

/** Replaces names by ids. Members estimate only for themselves. */
async function withIds(
  leaseForm: LeaseForm,
  request: PageRequest,
): Promise<{ readonly leaseForm: LeaseForm; readonly mistakes: ReadonlyMap<string, string> }> {
  const { caller } = request;
  const mistakes = new Map<string, string>();
  if (caller.kind === 'member') {
    return { leaseForm: { ...leaseForm, user: caller.userId ?? '' }, mistakes };
  }
  const idOf = async (kind: 'project' | 'user') => {
    const text = leaseForm[kind];
    try {
      return text === '' ? text : await accountId(request, kind, text, kind);
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) {
        throw thrown;
      }
      mistakes.set(kind, thrown.message);
      return text;
    }
  };
  return { leaseForm: { ...leaseForm, project: await idOf('project'), user: await idOf('user') }, mistakes };
}

function shown(request: PageRequest, leaseForm: LeaseForm, said: Shown = {}): PageAnswer {
  const { caller, csrf, generation } = request;
  return tryPage(
    {
      title: 'Try a lease',
      asked: 'The lease',
      form: (
        <TryForm
          leaseForm={leaseForm}
          mistakes={said.mistakes ?? new Map()}
          csrf={csrf}
          projects={caller.kind === 'member' ? ownProjects(caller, generation) : undefined}
          types={typesOf(generation)}
        />
      ),
    },
    said,
  );
}

/** The exact command, or why there is none. */
function HowToGet({ wanted: { asked, lease } }: { readonly wanted: WantedLease }) {
  const command = leaseCommand(asked);
  return command === undefined ? (
    <>
      <p>
        The openstack client cannot request exactly this lease. Send this to Blazar's API, as POST /v1/leases:
      </p>
      <pre class="command">{JSON.stringify({ ...lease, events: [] }, null, 2)}</pre>
    </>
  ) : (
    <>
      <p>In a shell, as this user in this project:</p>
      <pre class="command">{command}</pre>
    </>
  );
}

function ownProjects(caller: Caller, generation: Generation): [string, string][] {
  const nameOf = nameOfFor(generation, caller);
  return caller.memberships.map(({ projectId }) => {
    const named = nameOf('project', projectId);
    return [projectId, named === undefined ? projectId : `${named.name}@${named.domain} (${projectId})`];
  });
}

/** Defaults for what a link leaves open: one day from tomorrow, one host. */
function withDefaults(leaseForm: LeaseForm, caller: Caller, now: Instant): LeaseForm {
  const [first] = caller.memberships;
  const start = now - (now % HOUR) + 24n * HOUR;
  const hasDates = leaseForm.start !== '' || leaseForm.end !== '';
  return {
    project: leaseForm.project || (caller.kind === 'member' ? (first?.projectId ?? '') : ''),
    user: leaseForm.user || (caller.userId ?? ''),
    name: leaseForm.name || 'my-lease',
    start: hasDates ? leaseForm.start : local(start),
    end: hasDates ? leaseForm.end : local(start + 24n * HOUR),
    reservations:
      leaseForm.reservations.length > 0 ? leaseForm.reservations : [newReservation('physical:host')],
  };
}

/** Blazar's types and those of the site's plug-ins. */
function typesOf({ configuration }: Generation): string[] {
  const own = configuration.settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'resource_types',
  )?.value;
  const further = Array.isArray(own) ? own.filter((one): one is string => typeof one === 'string') : [];
  return [...new Set([...RESOURCE_TYPES, ...further])];
}

/**
 * The reservations of the linked decision, if the caller may see it, and what could not be filled in;
 * `undefined` = no decision is linked. `types`: of the form.
 */
async function refusedReservations(request: PageRequest, types: readonly string[]) {
  const id = request.query.get('decision');
  if (!id) {
    return undefined;
  }
  const decisions = await decisionsOf(request, id);
  const asked = decisions.find((one) => one.asked?.reservations !== undefined)?.asked?.reservations;
  if (asked === undefined) {
    return {
      reservations: [],
      notice: 'The reservations of the refused lease were not kept: fill them in.',
    };
  }
  const reservations = asked
    .map(formOfReservation)
    .filter(({ type }) => types.includes(type))
    .slice(0, MOST_RESERVATIONS);
  const left = asked.length - reservations.length;
  return {
    reservations,
    notice: left
      ? `The refused lease had ${asked.length} reservations; ${left} of them do not fit into this form.`
      : undefined,
  };
}
