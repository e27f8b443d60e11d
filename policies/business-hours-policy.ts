import { DateTime, IANAZone } from 'luxon';
import { z } from 'zod';
import {
  type Accelerator,
  AdminPolicy,
  acceleratorsOf,
  cloudsOf,
  infraOf,
  isListed,
  isPlainAccelerator,
  isWorkspaceListed,
  MutatedUserRequest,
  matchesPattern,
  mayGiveAccelerators,
  PolicyRejected,
  type PolicyServices,
  type Resources,
  readingsOfAccelerator,
  resourcesOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const DAY_MINUTES = 24 * 60;
/** How far ahead the next allowed time is searched, for the rejection. */
const DAYS_AHEAD = 31;

const patterns = z.array(z.string().regex(/^[^\s,]{1,100}$/)).max(1000);

const options = z.object({
  business_hours: z
    .array(z.string().refine((text) => hoursOf(text) !== undefined))
    .min(1)
    .max(50)
    .default(['mon-fri 08:00-18:00'])
    .meta({
      description:
        'The business hours. Without days: every day. Hours that end before they begin end on the next day, such as fri 20:00-06:00.',
      expected:
        'a comma-separated list of hours such as mon-fri 08:00-18:00, sat sun 10:00-14:00 or 00:00-24:00',
    }),
  business_hours_launches: z.enum(['within', 'outside']).default('within').meta({
    description: 'When launches are allowed: within business hours or outside of them.',
  }),
  business_hours_time_zone: z
    .string()
    .refine((zone) => IANAZone.isValidZone(zone))
    .default('UTC')
    .meta({
      description: 'The time zone of these hours and days.',
      expected: 'a time zone such as Europe/Berlin',
    }),
  business_hours_holidays: z
    .array(z.string().refine((date) => isDate(date)))
    .max(1000)
    .default([])
    .meta({
      description: 'Days without business hours, each of one year (2026-12-24) or of every year (12-25).',
      expected: 'a comma-separated list of dates such as 2026-12-24 or 12-25',
    }),
  business_hours_resources: z.enum(['accelerators', 'all']).default('accelerators').meta({
    description: 'Which launches are restricted: those with accelerators, or all.',
  }),
  business_hours_accelerators: patterns.default([]).meta({
    description:
      'With business_hours_resources = accelerators: only these, such as H100 or H100*; upper and lower case are the same. Empty = all.',
  }),
  business_hours_cpu_instance_types: patterns.default([]).meta({
    description:
      'Instance types that have no accelerators, such as m5.* or n2-*. A task that names any other instance_type is restricted, as that may have some.',
  }),
  business_hours_exec: z.boolean().default(false).meta({
    description: 'Whether sky exec, which uses a cluster that is up, is restricted too.',
  }),
  business_hours_controllers: z.enum(['restricted', 'allowed']).default('restricted').meta({
    description:
      'Whether the controllers of managed jobs and services may launch at any time: to recover from a preemption, or a job that had to wait. Users who call the API of SkyPilot themselves can pose as one.',
  }),
  business_hours_users: z.array(z.string().min(1)).default([]).meta({
    description: 'Users who may launch at any time, by name or id; service accounts by id.',
  }),
  business_hours_workspaces: z.array(z.string().min(1)).default([]).meta({
    description: 'Workspaces in which all users may launch at any time.',
  }),
});

type Options = z.infer<typeof options>;

/** Requests that start nothing, or only a controller. All others, including unknown ones, are restricted. */
const STARTS_NOTHING = ['validate', 'optimize', 'jobs.launch_controller', 'serve.launch_controller'];
const BY_CONTROLLERS = ['jobs.launch_cluster', 'serve.launch_replica'];

/**
 * Allows launches only within business hours, or only outside of them. Applies when SkyPilot's server carries
 * out a request; clusters keep running. Clients are not checked: they do not know their user.
 */
export class BusinessHoursPolicy extends AdminPolicy<Options> {
  static override readonly options = options;

  readonly #hours: readonly Hours[];
  readonly #holidays: ReadonlySet<string>;

  constructor(values: Options, services: PolicyServices) {
    super(values, services);
    this.#hours = values.business_hours.map(hoursOf).filter((hours) => hours !== undefined);
    this.#holidays = new Set(values.business_hours_holidays);
  }

  override validateAndMutate(userRequest: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig } = userRequest;
    if (this.#isRestricted(userRequest)) {
      const now = DateTime.fromJSDate(this.services.clock.now(), {
        zone: this.options.business_hours_time_zone,
      });
      if (!now.isValid) {
        throw new Error(`the time is not known: ${now.invalidExplanation}`);
      }
      if (!this.#isAllowed(now)) {
        throw new PolicyRejected(this.#reason(now));
      }
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  #isRestricted({
    task,
    skypilotConfig,
    requestName,
    requestOptions,
    atClientSide,
    user,
  }: UserRequest): boolean {
    const {
      business_hours_exec: exec,
      business_hours_controllers: controllers,
      business_hours_users: users,
      business_hours_workspaces: workspaces,
      business_hours_resources: resources,
    } = this.options;
    const starts =
      !STARTS_NOTHING.includes(requestName) &&
      (exec || requestName !== 'exec') &&
      (controllers === 'restricted' || !BY_CONTROLLERS.includes(requestName));
    if (atClientSide || !starts || requestOptions?.dryrun === true) {
      return false;
    }
    const isExempt = isListed(user, users) || isWorkspaceListed(skypilotConfig, workspaces);
    return (
      !isExempt &&
      (resources === 'all' ||
        resourcesOf(task).some((one) =>
          this.#mayHaveAccelerators(one, cloudsOf(skypilotConfig.get('allowed_clouds'))),
        ))
    );
  }

  #mayHaveAccelerators(resources: Resources, clouds: readonly string[] | null): boolean {
    const { instance_type: type = null } = resources;
    const asked = acceleratorsOf(resources);
    return (
      asked.some((accelerator) => this.#isMeant(accelerator)) ||
      (type === null
        ? asked.every(({ count }) => count === 0) && mayGiveAccelerators(infraOf(resources).cloud, clouds)
        : !matches(String(type), this.options.business_hours_cpu_instance_types))
    );
  }

  #isMeant({ name, memory }: Accelerator): boolean {
    // SkyPilot takes any accelerator with that memory, and searches for a name as a regular expression.
    const isName = memory === undefined && isPlainAccelerator(name);
    const { business_hours_accelerators: meant } = this.options;
    const listed = meant.flatMap((pattern) => pattern.split('*'));
    return (
      meant.length === 0 || !isName || readingsOfAccelerator(name, listed).some((one) => matches(one, meant))
    );
  }

  #isAllowed(at: DateTime): boolean {
    return this.#isBusiness(at) === (this.options.business_hours_launches === 'within');
  }

  #isBusiness(at: DateTime): boolean {
    // Hours of yesterday may last until today.
    return [0, 1].some((daysAgo) => {
      const day = at.minus({ days: daysAgo });
      const minute = at.hour * 60 + at.minute + daysAgo * DAY_MINUTES;
      return this.#hoursOn(day).some(({ begin, end }) => begin <= minute && minute < end);
    });
  }

  #hoursOn(day: DateTime): readonly Hours[] {
    const isHoliday =
      this.#holidays.has(day.toFormat('yyyy-MM-dd')) || this.#holidays.has(day.toFormat('MM-dd'));
    return isHoliday ? [] : this.#hours.filter(({ days }) => days.includes(day.weekday));
  }

  #reason(now: DateTime): string {
    const {
      business_hours_launches: when,
      business_hours_resources: what,
      business_hours: hours,
    } = this.options;
    const launches = what === 'all' ? 'Launches' : 'Launches with accelerators';
    const next = this.#nextAllowed(now);
    const then =
      next === undefined
        ? ''
        : `; the next time is ${next.toFormat('ccc yyyy-MM-dd HH:mm', { locale: 'en' })}`;
    const clock = now.toFormat('ccc HH:mm', { locale: 'en' });
    return `${launches} are allowed only ${when} business hours: ${hours.join(', ')} (${now.zoneName}). It is ${clock} there${then}.`;
  }

  #nextAllowed(now: DateTime): DateTime | undefined {
    return Array.from({ length: DAYS_AHEAD }, (_, index) => now.startOf('day').plus({ days: index - 1 }))
      .flatMap((day) =>
        this.#hoursOn(day).flatMap(({ begin, end }) => [atMinute(day, begin), atMinute(day, end)]),
      )
      .filter((at) => at > now)
      .sort((a, b) => a.toMillis() - b.toMillis())
      .find((at) => this.#isAllowed(at));
  }
}

/** Hours on certain days, in minutes from midnight, local time. `end` above 24:00 is on the next day. */
interface Hours {
  /** 1 = Monday. */
  readonly days: readonly number[];
  readonly begin: number;
  readonly end: number;
}

function hoursOf(text: string): Hours | undefined {
  const [found, days = '', ...times] =
    /^((?:[a-z]{3}(?:-[a-z]{3})? +)*)(\d\d):(\d\d)-(\d\d):(\d\d)$/i.exec(text.trim()) ?? [];
  if (found === undefined) {
    return undefined;
  }
  const named = days.trim() === '' ? ['mon-sun'] : days.trim().toLowerCase().split(/ +/);
  const numbers = named.map(daysOf);
  const [h1 = 0, m1 = 0, h2 = 0, m2 = 0] = times.map(Number);
  const begin = h1 * 60 + m1;
  const end = h2 * 60 + m2;
  const isTime = m1 < 60 && m2 < 60 && begin < DAY_MINUTES && end <= DAY_MINUTES && begin !== end;
  if (!isTime || numbers.some((one) => one === undefined)) {
    return undefined;
  }
  return { days: numbers.flatMap((one) => one ?? []), begin, end: end < begin ? end + DAY_MINUTES : end };
}

/** `mon`, `mon-fri`, or across the weekend: `sat-mon`. */
function daysOf(text: string): number[] | undefined {
  const [first = -1, last = first] = text.split('-').map((name) => DAYS.indexOf(name));
  if (first < 0 || last < 0) {
    return undefined;
  }
  return Array.from({ length: ((last - first + 7) % 7) + 1 }, (_, index) => ((first + index) % 7) + 1);
}

function isDate(text: string): boolean {
  // 2024 had a February 29.
  const [found] = /^(?:\d{4}-)?\d\d-\d\d$/.exec(text) ?? [];
  return found !== undefined && DateTime.fromISO(found.length === 5 ? `2024-${found}` : found).isValid;
}

function atMinute(day: DateTime, minute: number): DateTime {
  const on = day.plus({ days: Math.floor(minute / DAY_MINUTES) });
  return on.set({ hour: Math.floor((minute % DAY_MINUTES) / 60), minute: minute % 60 });
}

/** Ignores case. */
function matches(text: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => matchesPattern(pattern.toLowerCase(), text.toLowerCase()));
}
