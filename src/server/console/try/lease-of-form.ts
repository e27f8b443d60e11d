/** From the form to the lease that Blazar would be asked for, or what is wrong at which field. */
import { formatInstant, type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../../lease/dates.ts';
import type { Lease, Reservation } from '../../../lease/lease.ts';
import { formatResourceProperties, parseResourceProperties } from '../../../lease/resource-properties.ts';
import { type Asked, type Parameter, reservationText, sentReservation } from './client-syntax.ts';
import {
  type Comparison,
  comparisonName,
  fieldName,
  type LeaseForm,
  type ReservationField,
  type ReservationForm,
} from './lease-form.ts';

/** Name of a field → what is wrong with it. */
export type Mistakes = ReadonlyMap<string, string>;

export interface WantedLease {
  readonly lease: Lease;
  readonly asked: Asked;
}

/** Blazar's column of names. */
const MAX_NAME = 80;
const MAX_ID = 255;
const MAX_TEXT = 4096;
const MOST = 1_000_000;
const MINUTE = 60n * MICROSECONDS_PER_SECOND;
/** What cannot be seen cannot be copied from a page either. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** The lease of a form without mistakes. `now`: for a lease that starts at once. */
export function leaseOf(leaseForm: LeaseForm, now: Instant): WantedLease | { readonly mistakes: Mistakes } {
  const mistakes = new Map<string, string>();
  const check = (name: string, mistake: string | undefined) => {
    if (mistake !== undefined && !mistakes.has(name)) {
      mistakes.set(name, mistake);
    }
  };
  check('project', idMistake(leaseForm.project, 'a project'));
  check('user', idMistake(leaseForm.user, 'a user'));
  check('name', nameMistake(leaseForm.name));
  const start = leaseForm.start === '' ? floorMinute(now) : minuteOf(leaseForm.start);
  const end = minuteOf(leaseForm.end);
  check('start', start === undefined ? dateMistake : undefined);
  check('end', end === undefined ? dateMistake : undefined);
  if (start !== undefined && end !== undefined && end <= start) {
    check('end', 'expected an end after the start');
  }
  if (leaseForm.reservations.length === 0) {
    check('add', 'expected at least one reservation: add one');
  }
  const reservations = leaseForm.reservations.map((one, index) => parametersOf(one, index, check));
  if (mistakes.size > 0 || start === undefined || end === undefined) {
    return { mistakes };
  }
  const asked: Asked = {
    name: leaseForm.name,
    start: leaseForm.start === '' ? undefined : clientDate(start),
    end: clientDate(end),
    reservations: reservations.map(({ parameters }) => parameters),
  };
  return {
    asked,
    lease: {
      name: leaseForm.name,
      start_date: clientDate(start),
      end_date: clientDate(end),
      reservations: reservations.map(bodyOf),
    },
  };
}

interface Written {
  readonly parameters: readonly Parameter[];
  /** Of types that the client cannot ask for: further attributes. */
  readonly more: Readonly<Record<string, unknown>>;
}

/** What the client sends; of other types, the attributes as they are, whole numbers as numbers. */
function bodyOf({ parameters, more }: Written): Reservation {
  const sent = sentReservation(reservationText(parameters));
  return (
    sent ?? {
      ...more,
      ...Object.fromEntries(
        parameters.map(([key, value]) => [key, COUNT.test(value) ? Number(value) : value]),
      ),
    }
  );
}

type Check = (name: string, mistake: string | undefined) => void;

function parametersOf(wished: ReservationForm, index: number, check: Check): Written {
  const { fields } = wished;
  const parameters: Parameter[] = [['resource_type', fields.type]];
  let more: Readonly<Record<string, unknown>> = {};
  const at = (field: ReservationField) => fieldName(index, field);
  const count = (field: ReservationField, key: string = field, least = 1) => {
    check(at(field), countMistake(fields[field], least));
    parameters.push([key, String(Number(fields[field]))]);
  };
  const id = (field: ReservationField, what: string) => {
    check(at(field), idMistake(fields[field], what));
    parameters.push([field, fields[field]]);
  };
  const affinity = () => {
    if (fields.affinity !== '') {
      check(at('affinity'), ['True', 'False'].includes(fields.affinity) ? undefined : 'expected a choice');
      parameters.push(['affinity', fields.affinity]);
    }
  };
  switch (fields.type) {
    case 'physical:host':
      count('min');
      count('max');
      if (Number(fields.min) > Number(fields.max)) {
        check(at('max'), 'expected a maximum that is not below the minimum');
      }
      expression('hypervisor', 'hypervisor_properties', fields.hypervisor, parameters, at, check);
      properties(wished, index, parameters, at, check);
      break;
    case 'virtual:instance':
      count('amount');
      count('vcpus');
      count('memory_mb');
      count('disk_gb', 'disk_gb', 0);
      affinity();
      properties(wished, index, parameters, at, check);
      break;
    case 'flavor:instance':
      count('amount');
      id('flavor_id', 'a flavour');
      affinity();
      break;
    case 'virtual:floatingip':
      count('amount');
      id('network_id', 'a network');
      addresses(fields.addresses, parameters, at, check);
      break;
    default:
      if (fields.amount !== '') {
        count('amount');
      }
      more = furtherOf(fields.more, at, check);
  }
  return { parameters, more };
}

type At = (field: ReservationField) => string;

/** Simple comparisons, or a text for experts: not both. */
function properties(
  { fields, comparisons }: ReservationForm,
  index: number,
  parameters: Parameter[],
  at: At,
  check: Check,
): void {
  const given = comparisons.flatMap((one, row) =>
    one.name === '' && one.value === '' ? [] : [{ ...one, row }],
  );
  if (given.length > 0 && fields.properties !== '') {
    check(at('properties'), 'expected either simple comparisons or this text, not both');
    return;
  }
  if (given.length === 0) {
    expression('properties', 'resource_properties', fields.properties, parameters, at, check);
    return;
  }
  for (const one of given) {
    const [part, mistake] = comparisonMistake(one) ?? [];
    if (part !== undefined) {
      check(comparisonName(index, one.row, part), mistake);
    }
  }
  const requirements = given.map(({ name, operator, value }) => ({
    ...{ name: name.replace(/^\$/, ''), value },
    operator: operator as '==',
  }));
  parameters.push(['resource_properties', formatResourceProperties(requirements)]);
}

function comparisonMistake({ name, operator, value }: Comparison): [keyof Comparison, string] | undefined {
  if (!/^\$?[^\s$]+$/.test(name) || UNSEEN.test(name) || name.length > MAX_ID) {
    return ['name', 'expected the name of a property without blanks, such as gpu'];
  }
  if (!['==', '!=', '>=', '<=', '>', '<'].includes(operator)) {
    return ['operator', 'expected a comparison'];
  }
  return value === '' || UNSEEN.test(value) || value.length > MAX_ID
    ? ['value', `expected a value of at most ${MAX_ID} visible characters`]
    : undefined;
}

/** A text that Blazar parses. */
function expression(
  field: ReservationField,
  key: string,
  text: string,
  parameters: Parameter[],
  at: At,
  check: Check,
): void {
  if (text === '') {
    return;
  }
  try {
    if (text.length > MAX_TEXT || UNSEEN.test(text.replaceAll(/[\r\n\t]/g, ' '))) {
      throw new Error(`expected at most ${MAX_TEXT} visible characters`);
    }
    parseResourceProperties(text);
    // On one line, for the shell and the client.
    parameters.push([key, JSON.stringify(JSON.parse(text))]);
  } catch (thrown) {
    check(at(field), thrown instanceof Error ? thrown.message : 'expected a list in JSON');
  }
}

function addresses(text: string, parameters: Parameter[], at: At, check: Check): void {
  const given = text.split(/[\s,]+/).filter((one) => one !== '');
  if (given.length === 0) {
    return;
  }
  const isWrong = given.length > 100 || given.some((one) => !/^[0-9a-fA-F.:]{2,45}$/.test(one));
  check(
    at('addresses'),
    isWrong ? 'expected at most 100 addresses, such as 203.0.113.7, separated by commas' : undefined,
  );
  parameters.push(['required_floatingips', JSON.stringify(given)]);
}

function furtherOf(text: string, at: At, check: Check): Readonly<Record<string, unknown>> {
  if (text === '') {
    return {};
  }
  try {
    const value: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>;
    }
  } catch {
    // Said below.
  }
  check(
    at('more'),
    `expected an object in JSON of at most ${MAX_TEXT} characters, such as {"network_name": "lab"}`,
  );
  return {};
}

const COUNT = /^\d{1,7}$/;

function countMistake(text: string, least: number): string | undefined {
  const isFine = COUNT.test(text) && Number(text) >= least && Number(text) <= MOST;
  return isFine ? undefined : `expected a whole number from ${least} to ${MOST}`;
}

function idMistake(text: string, of: string): string | undefined {
  const isFine = text !== '' && text.length <= MAX_ID && !UNSEEN.test(text);
  return isFine ? undefined : `expected the id of ${of}, of at most ${MAX_ID} visible characters`;
}

function nameMistake(name: string): string | undefined {
  const isFine = name !== '' && [...name].length <= MAX_NAME && !UNSEEN.test(name);
  return isFine ? undefined : `expected a name of at most ${MAX_NAME} visible characters`;
}

const dateMistake = 'expected a date and a time to the minute, such as 2026-12-01T09:00 (UTC)';

/** Blazar's client knows no seconds. */
function minuteOf(text: string): Instant | undefined {
  const instant = toInstant(text);
  return instant !== undefined && instant >= 0n && instant % MINUTE === 0n ? instant : undefined;
}

function floorMinute(instant: Instant): Instant {
  return instant - (instant % MINUTE);
}

/** `2026-12-01 09:00` */
function clientDate(instant: Instant): string {
  return formatInstant(instant).slice(0, 16).replace('T', ' ');
}
