/** The form of "Try it": a lease in fields. Each type of resource has its own; buttons add and remove reservations without a script. */
import type { Caller } from '../../users/caller.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { Text, visible } from '../parts/parts.tsx';
import {
  type Comparison,
  comparisonName,
  fieldName,
  type LeaseForm,
  MOST_RESERVATIONS,
  type ReservationField,
  type ReservationForm,
} from './lease-form.ts';
import type { Mistakes } from './lease-of-form.ts';

export interface TryFormProps {
  readonly leaseForm: LeaseForm;
  readonly mistakes: Mistakes;
  readonly csrf: string;
  /** The projects to choose from: id and text; `undefined` = any id may be typed. */
  readonly projects: readonly (readonly [string, string])[] | undefined;
  /** Whether any user may be typed; else it is the caller. */
  readonly choosesUser: boolean;
  readonly caller: Caller;
  readonly types: readonly string[];
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  'physical:host': 'hosts',
  'virtual:instance': 'instances',
  'flavor:instance': 'instances of a flavour',
  'virtual:floatingip': 'floating IPs',
};

/** `hosts`; types of other plug-ins are called as they are. */
function typeName(type: string): string {
  return TYPE_NAMES[type] ?? type;
}

const USER: FieldEntry = {
  ...{ name: 'user', label: 'User', isRequired: true },
  hint: 'The id, or name@domain, of the user who asks for the lease.',
};
const DATES: readonly FieldEntry[] = [
  {
    ...{ name: 'start', type: 'datetime-local', label: 'Start (UTC)' },
    hint: 'Date and time in UTC. Empty: now.',
  },
  {
    ...{ name: 'end', type: 'datetime-local', label: 'End (UTC)', isRequired: true },
    hint: 'Date and time in UTC.',
  },
];
const AFFINITIES = [
  ['', 'no matter'],
  ['True', 'all on one host'],
  ['False', 'each on its own host'],
] as const;
const EXPRESSIONS = { properties: 'resource_properties', hypervisor: 'hypervisor_properties' } as const;

export function TryForm(props: TryFormProps) {
  const { leaseForm, mistakes, csrf, projects, choosesUser, types } = props;
  const whose: FieldEntry[] = [
    projects === undefined
      ? { name: 'project', label: 'Project', hint: 'Its id, or name@domain.', isRequired: true }
      : { name: 'project', label: 'Project', options: projects.map(([id, text]) => [id, visible(text)]) },
    ...(choosesUser ? [USER] : []),
    { name: 'name', label: 'Name of the lease', maxLength: 80, isRequired: true },
  ];
  const { reservations, ...values } = leaseForm;
  return (
    <ChangeForm action="/try" csrf={csrf}>
      {/* The Enter key takes the first button. */}
      <button type="submit" name="do" value="try" class="unseen" tabIndex={-1} aria-hidden="true">
        Try it
      </button>
      {[whose, DATES].map((fields) => (
        <div class="fields">
          <Fields {...{ fields, values, mistakes }} />
        </div>
      ))}
      {reservations.map((reservation, index) => (
        <ReservationFields {...{ reservation, index, mistakes }} />
      ))}
      {mistakes.has('add') && (
        <p class="error" role="alert">
          {mistakes.get('add')}
        </p>
      )}
      {reservations.length < MOST_RESERVATIONS && (
        <p class="buttons">
          <span>Add to the lease:</span>
          {types.map((type) => (
            <button type="submit" name="do" value={`add ${type}`} class="plain" formnovalidate>
              {visible(typeName(type))}
            </button>
          ))}
        </p>
      )}
      <button type="submit" name="do" value="try">
        Try it
      </button>
    </ChangeForm>
  );
}

interface ReservationProps {
  readonly reservation: ReservationForm;
  readonly index: number;
  readonly mistakes: Mistakes;
}

function ReservationFields(props: ReservationProps) {
  const { reservation, index, mistakes } = props;
  const { type } = reservation.fields;
  const title = `Reservation ${index + 1}: ${typeName(type)}`;
  return (
    <fieldset>
      <legend>
        <Text>{title}</Text>
      </legend>
      <input type="hidden" name={fieldName(index, 'type')} value={type} />
      <div class="fields">
        <Fields fields={fieldsOf(props)} mistakes={mistakes} />
      </div>
      {(type === 'physical:host' || type === 'virtual:instance') && <Properties {...props} />}
      <button
        type="submit"
        name="do"
        value={`remove ${index}`}
        class="plain"
        formnovalidate
        aria-label={`Remove reservation ${index + 1}`}
      >
        Remove
      </button>
    </fieldset>
  );
}

function fieldsOf({ reservation: { fields }, index }: ReservationProps): FieldEntry[] {
  const one = (field: ReservationField, label: string, more: Partial<FieldEntry> = {}): FieldEntry => ({
    ...{ name: fieldName(index, field), label, value: fields[field] },
    ...more,
  });
  const count = (field: ReservationField, label: string, min = '1') =>
    one(field, label, { type: 'number', min });
  const affinity = () => one('affinity', 'Affinity', { options: AFFINITIES });
  switch (fields.type) {
    case 'physical:host':
      return [count('min', 'Hosts, at least'), count('max', 'Hosts, at most')];
    case 'virtual:instance':
      return [
        count('amount', 'Instances'),
        count('vcpus', 'vCPUs of each'),
        count('memory_mb', 'Memory of each, in MB'),
        count('disk_gb', 'Disk of each, in GB', '0'),
        affinity(),
      ];
    case 'flavor:instance':
      return [count('amount', 'Instances'), one('flavor_id', 'Id of the flavour'), affinity()];
    case 'virtual:floatingip':
      return [
        count('amount', 'Addresses'),
        one('network_id', 'Id of the external network'),
        one('addresses', 'These addresses', { hint: 'May be empty. Separated by commas.' }),
      ];
    default:
      return [
        count('amount', 'How many (may be empty)'),
        one('more', 'Further attributes', {
          hint: 'An object in JSON, as the plug-in expects. May be empty.',
        }),
      ];
  }
}

const OPERATORS = ['==', '!=', '>=', '<=', '>', '<'] as const;
const OPERATOR_TEXTS = OPERATORS.map((one) => [one, one] as const);

function Properties({ reservation: { fields, comparisons }, index, mistakes }: ReservationProps) {
  const expression = (field: 'properties' | 'hypervisor', hint: string): FieldEntry => ({
    ...{ name: fieldName(index, field), label: EXPRESSIONS[field], hint, rows: 2, value: fields[field] },
  });
  const properties = expression(
    'properties',
    'JSON, instead of the fields above: ["and", ["==", "$gpu", "A100"], [">=", "$nvme", "2"]]',
  );
  const hypervisor = expression(
    'hypervisor',
    'JSON, with attributes that Nova reports: [">=", "$vcpus", "16"]',
  );
  return (
    <>
      <p class="hint">Properties that all hosts must have, such as gpu == A100. May be empty.</p>
      {comparisons.map((one, row) => {
        const part = (name: keyof Comparison, label: string): FieldEntry => ({
          ...{ name: comparisonName(index, row, name), label: `${label} ${row + 1}`, value: one[name] },
        });
        const operator = { ...part('operator', 'Comparison'), options: OPERATOR_TEXTS };
        return (
          <div class="fields">
            <Fields
              fields={[part('name', 'Property'), operator, part('value', 'Value')]}
              mistakes={mistakes}
            />
          </div>
        );
      })}
      <details open={fields.properties !== '' || fields.hypervisor !== ''}>
        <summary>Properties as Blazar's expression</summary>
        <Fields
          fields={fields.type === 'physical:host' ? [properties, hypervisor] : [properties]}
          mistakes={mistakes}
        />
      </details>
    </>
  );
}
