/** "Try it": whether a lease would be allowed, what it would cost, and what would be allowed instead. */

import { InvalidRequestError } from '../../../base/errors.ts';
import { RESOURCE_TYPES } from '../../../config/names.ts';
import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import type { Instant } from '../../../lease/dates.ts';
import { ApiError } from '../../api/route.ts';
import { accountId } from '../../budgets/named-accounts.ts';
import type { Generation } from '../../configuration/generation.ts';
import { memberEstimate } from '../../estimate/estimate-lease.ts';
import { may } from '../../users/access.ts';
import type { Person } from '../../users/person.ts';
import type { ConsolePage, PageAnswer, PageRequest } from '../page.ts';
import { nameOfFor } from '../parts/account.tsx';
import { Message } from '../parts/parts.tsx';
import { leaseOf, type Mistakes } from './lease-of-wish.ts';
import { chargedTo, TryAnswer, type TryAnswerProps } from './try-answer.tsx';
import { TryForm, type TryFormProps } from './try-form.tsx';
import { local, newReservation, readWish, type Wish, wishOf } from './wish.ts';

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
    const { query, person, generation } = request;
    const types = typesOf(generation);
    const wish = withDefaults(readWish(query, types), person, nowOf(generation));
    return shown(request, wish, {});
  },
};

export const tryForm: ConsolePage = {
  method: 'POST',
  path: '/try',
  action: 'estimate',
  formLimit: FORM_LIMIT,
  answer: async (request) => {
    const { form, generation } = request;
    const wish = readWish(form, typesOf(generation));
    const [what, argument = ''] = (form.get('do') ?? 'try').split(/ (.*)/s);
    if (what === 'add' && typesOf(generation).includes(argument)) {
      return shown(request, { ...wish, reservations: [...wish.reservations, newReservation(argument)] }, {});
    }
    if (what === 'remove') {
      const reservations = wish.reservations.filter((_, index) => String(index) !== argument);
      return shown(request, { ...wish, reservations }, {});
    }
    return tried(request, wish);
  },
};

async function tried(request: PageRequest, wish: Wish): Promise<PageAnswer> {
  const { person, generation, deadline, requestId, csrf } = request;
  const { enforcement } = generation;
  const { wish: known, mistakes: unknown } = await withIds(wish, request);
  const wanted = leaseOf(known, nowOf(generation));
  const mistakes = new Map([...unknown, ...('mistakes' in wanted ? wanted.mistakes : [])]);
  if ('mistakes' in wanted || mistakes.size > 0) {
    return shown(request, wish, { mistakes, status: 400 });
  }
  if (!may(person, 'estimate', known.project)) {
    // The same whether or not there is such a project.
    return shown(request, wish, {
      mistakes: new Map([['project', 'expected one of your projects']]),
      status: 403,
    });
  }
  const context = { user_id: known.user, project_id: known.project };
  try {
    // As Blazar, which cannot take a changed lease.
    const how = { deadline, requestId, acceptsChanges: false };
    const all = await enforcement.estimate({ context, lease: wanted.lease }, how);
    const estimate = person.kind === 'member' ? memberEstimate(all) : all;
    const wishes = estimate.suggestions.map(({ lease }) => wishOf(lease, wish, wanted.lease));
    const accountText = await chargedTo(request, known.project, estimate);
    const unit = budgetUnit(generation.configuration);
    return shown(request, wish, { answer: { ...{ wanted, estimate, wishes, csrf, unit, accountText } } });
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return shown(request, wish, { error: `The lease cannot be judged: ${thrown.message}`, status: 400 });
    }
    throw thrown;
  }
}

/** Ids in place of names. A member asks for themselves. */
async function withIds(
  wish: Wish,
  request: PageRequest,
): Promise<{ readonly wish: Wish; readonly mistakes: Mistakes }> {
  const { person } = request;
  if (person.kind === 'member') {
    return { wish: { ...wish, user: person.userId ?? '' }, mistakes: NO_MISTAKES };
  }
  const mistakes = new Map<string, string>();
  const idOf = async (kind: 'project' | 'user') => {
    const text = wish[kind];
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
  return { wish: { ...wish, project: await idOf('project'), user: await idOf('user') }, mistakes };
}

type Shown = Pick<TryViewProps, 'answer' | 'error'> & {
  readonly mistakes?: Mistakes;
  readonly status?: number;
};

function shown(
  { person, csrf, generation }: PageRequest,
  wish: Wish,
  { answer, error, mistakes = NO_MISTAKES, status = 200 }: Shown,
): PageAnswer {
  const isMember = person.kind === 'member';
  const form = {
    ...{ wish, mistakes, csrf, person, types: typesOf(generation) },
    projects: isMember ? ownProjects(person, generation) : undefined,
    choosesUser: !isMember,
  };
  const verdict = answer && (answer.estimate.decision.allowed ? 'Allowed' : 'Refused');
  return {
    status,
    title: verdict === undefined ? TITLE : `${TITLE}: ${verdict}`,
    main: <TryView form={form} answer={answer} error={error} />,
  };
}

function ownProjects(person: Person, generation: Generation): [string, string][] {
  const nameOf = nameOfFor(generation, person);
  return person.memberships.map(({ projectId }) => {
    const named = nameOf('project', projectId);
    return [projectId, named === undefined ? projectId : `${named.name}@${named.domain} (${projectId})`];
  });
}

/** What a link has left open: tomorrow for a day, one host. */
function withDefaults(wish: Wish, person: Person, now: Instant): Wish {
  const [first] = person.memberships;
  const start = now - (now % HOUR) + 24n * HOUR;
  const hasDates = wish.start !== '' || wish.end !== '';
  return {
    project: wish.project || (person.kind === 'member' ? (first?.projectId ?? '') : ''),
    user: wish.user || (person.userId ?? ''),
    name: wish.name || 'my-lease',
    start: hasDates ? wish.start : local(start),
    end: hasDates ? wish.end : local(start + 24n * HOUR),
    reservations: wish.reservations.length > 0 ? wish.reservations : [newReservation('physical:host')],
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
}

function TryView({ form, answer, error }: TryViewProps) {
  const { size } = form.mistakes;
  return (
    <>
      {error !== undefined && <Message kind="error">{error}</Message>}
      {size > 0 && (
        <Message kind="error">
          {size === 1 ? 'One field needs' : `${size} fields need`} another value: see below.
        </Message>
      )}
      {answer !== undefined && <TryAnswer {...answer} />}
      <section aria-labelledby="wish">
        <h2 id="wish">{answer === undefined ? 'What lease do you want?' : 'Try another one'}</h2>
        <p class="hint">
          Every filter is asked, as for a real lease. Nothing is recorded. All times are in UTC.
        </p>
        <TryForm {...form} />
      </section>
    </>
  );
}
