/** "Try it": whether a lease would be allowed, what it would cost, and what would be allowed instead. */

import { InvalidRequestError } from '../../../base/errors.ts';
import { RESOURCE_TYPES } from '../../../config/names.ts';
import { budgetUnit } from '../../../enforcement/configuration.ts';
import type { Instant } from '../../../lease/dates.ts';
import { ApiError } from '../../api/route.ts';
import { accountId } from '../../budgets/named-accounts.ts';
import type { Generation } from '../../configuration/generation.ts';
import { memberEstimate } from '../../estimate/estimate-lease.ts';
import { type Caller, may } from '../../users/caller.ts';
import type { ConsolePage, PageAnswer, PageRequest } from '../page.ts';
import { Message, nameOfFor } from '../parts/parts.tsx';
import { leaseCommand } from './client-syntax.ts';
import {
  formOfLease,
  type LeaseForm,
  leaseFormFields,
  local,
  newReservation,
  readLeaseForm,
} from './lease-form.ts';
import { leaseOf, type Mistakes, type WantedLease } from './lease-of-form.ts';
import { refusedReservations } from './refused-lease.ts';
import { chargedTo, TryAnswer, type TryAnswerProps } from './try-answer.tsx';
import { TryForm, type TryFormProps } from './try-form.tsx';

const TITLE = 'Try it';
const NO_MISTAKES: Mistakes = new Map();
const HOUR: Instant = 3_600_000_000n;

/** In bytes: all fields as long as they may be. */
const FORM_LIMIT = 131_072;

export const tryPage: ConsolePage = {
  method: 'GET',
  path: '/try',
  action: 'estimate',
  label: 'Try it',
  answer: async (request) => {
    const { query, caller, generation } = request;
    const types = typesOf(generation);
    const linked = readLeaseForm(query, types);
    const refused = linked.reservations.length > 0 ? undefined : await refusedReservations(request, types);
    const wish = { ...linked, reservations: refused?.reservations ?? linked.reservations };
    return shown(request, withDefaults(wish, caller, nowOf(generation)), { notice: refused?.notice });
  },
};

export const tryForm: ConsolePage = {
  method: 'POST',
  path: '/try',
  action: 'estimate',
  formLimit: FORM_LIMIT,
  answer: async (request) => {
    const { form, generation } = request;
    const leaseForm = readLeaseForm(form, typesOf(generation));
    const [what, argument = ''] = (form.get('do') ?? 'try').split(/ (.*)/s);
    if (what === 'add' && typesOf(generation).includes(argument)) {
      return shown(
        request,
        { ...leaseForm, reservations: [...leaseForm.reservations, newReservation(argument)] },
        {},
      );
    }
    if (what === 'remove') {
      const reservations = leaseForm.reservations.filter((_, index) => String(index) !== argument);
      return shown(request, { ...leaseForm, reservations }, {});
    }
    return tried(request, leaseForm);
  },
};

async function tried(request: PageRequest, leaseForm: LeaseForm): Promise<PageAnswer> {
  const { caller, generation, deadline, requestId, csrf } = request;
  const { enforcement } = generation;
  const { leaseForm: known, mistakes: unknown } = await withIds(leaseForm, request);
  const wanted = leaseOf(known, nowOf(generation));
  const mistakes = new Map([...unknown, ...('mistakes' in wanted ? wanted.mistakes : [])]);
  if ('mistakes' in wanted || mistakes.size > 0) {
    return shown(request, leaseForm, { mistakes, status: 400 });
  }
  if (!may(caller, 'estimate', known.project)) {
    // The same whether or not there is such a project.
    return shown(request, leaseForm, {
      mistakes: new Map([['project', 'expected one of your projects']]),
      status: 403,
    });
  }
  const context = { user_id: known.user, project_id: known.project };
  try {
    // As Blazar, which cannot take a changed lease.
    const how = { deadline, requestId, acceptsChanges: false };
    const all = await enforcement.estimate({ context, lease: wanted.lease }, how);
    const estimate = caller.kind === 'member' ? memberEstimate(all) : all;
    const wishes = estimate.suggestions.map(({ lease }) =>
      leaseFormFields(formOfLease(lease, leaseForm, wanted.lease)),
    );
    const howToGet = <HowToGet wanted={wanted} />;
    const accountText = await chargedTo(request, known.project, estimate);
    const unit = budgetUnit(generation.configuration);
    return shown(request, leaseForm, {
      answer: { ...{ estimate, howToGet, wishes, csrf, unit, accountText }, what: 'lease', action: '/try' },
    });
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return shown(request, leaseForm, {
        error: `The lease cannot be judged: ${thrown.message}`,
        status: 400,
      });
    }
    throw thrown;
  }
}

/** Ids in place of names. A member asks for themselves. */
async function withIds(
  leaseForm: LeaseForm,
  request: PageRequest,
): Promise<{ readonly leaseForm: LeaseForm; readonly mistakes: Mistakes }> {
  const { caller } = request;
  if (caller.kind === 'member') {
    return { leaseForm: { ...leaseForm, user: caller.userId ?? '' }, mistakes: NO_MISTAKES };
  }
  const mistakes = new Map<string, string>();
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

type Shown = Pick<TryViewProps, 'answer' | 'error' | 'notice'> & {
  readonly mistakes?: Mistakes;
  readonly status?: number;
};

function shown(
  { caller, csrf, generation }: PageRequest,
  leaseForm: LeaseForm,
  { answer, error, notice, mistakes = NO_MISTAKES, status = 200 }: Shown,
): PageAnswer {
  const isMember = caller.kind === 'member';
  const form = {
    ...{ leaseForm, mistakes, csrf, caller, types: typesOf(generation) },
    projects: isMember ? ownProjects(caller, generation) : undefined,
    choosesUser: !isMember,
  };
  const verdict = answer && (answer.estimate.decision.allowed ? 'Allowed' : 'Refused');
  return {
    status,
    title: verdict === undefined ? TITLE : `${TITLE}: ${verdict}`,
    main: <TryView {...{ form, answer, error, notice }} />,
  };
}

/** The exact command, or why there is none. */
function HowToGet({ wanted: { asked, lease } }: { readonly wanted: WantedLease }) {
  const command = leaseCommand(asked);
  return command === undefined ? (
    <>
      <p>
        The openstack client cannot ask for exactly this lease. Send this to Blazar's API, as POST /v1/leases:
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

/** What a link has left open: tomorrow for a day, one host. */
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

function nowOf({ ledger }: Generation): Instant {
  return ledger?.now() ?? BigInt(Date.now()) * 1000n;
}

/** Blazar's own, and those of the site's plug-ins. */
function typesOf({ configuration }: Generation): string[] {
  const own = configuration.settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'resource_types',
  )?.value;
  const further = Array.isArray(own) ? own.filter((one): one is string => typeof one === 'string') : [];
  return [...new Set([...RESOURCE_TYPES, ...further])];
}

interface TryViewProps {
  readonly form: TryFormProps;
  /** `undefined` = nothing was tried. */
  readonly answer?: TryAnswerProps | undefined;
  /** Why there is no answer, apart from mistakes at the fields. */
  readonly error?: string | undefined;
  /** What a link did not fill in. */
  readonly notice?: string | undefined;
}

function TryView({ form, answer, error, notice }: TryViewProps) {
  const { size } = form.mistakes;
  return (
    <>
      {error !== undefined && <Message kind="error">{error}</Message>}
      {notice !== undefined && <Message kind="notice">{notice}</Message>}
      {size > 0 && (
        <Message kind="error">
          {size === 1 ? 'One field needs' : `${size} fields need`} another value: see below.
        </Message>
      )}
      {answer !== undefined && <TryAnswer {...answer} />}
      <section aria-labelledby="lease-form">
        <h2 id="lease-form">{answer === undefined ? 'What lease do you want?' : 'Try another one'}</h2>
        <p class="hint">
          Every filter is asked, as for a real lease. Nothing is recorded. All times are in UTC.
        </p>
        <TryForm {...form} />
      </section>
    </>
  );
}
