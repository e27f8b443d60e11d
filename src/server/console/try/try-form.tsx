/** The form of "Try a lease": a lease in fields, by resource type. Buttons work without a script. */
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { Message, Text, visible } from '../parts/parts.tsx';
import {
  COMPARISONS,
  fieldName,
  type LeaseForm,
  MOST_RESERVATIONS,
  type ReservationField,
  type ReservationForm,
} from './lease-form.ts';
import { type Mistakes, OPERATORS } from './lease-of-form.ts';

interface TryFormProps {
  readonly leaseForm: LeaseForm;
  readonly mistakes: Mistakes;
  readonly csrf: string;
  /** Projects that a member can choose, as id and text; `undefined` = any project and user can be entered. */
  readonly projects: readonly (readonly [string, string])[] | undefined;
  readonly types: readonly string[];
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  'physical:host': 'hosts',
  'virtual:instance': 'instances',
  'flavor:instance': 'instances of a flavor',
  'virtual:floatingip': 'floating IPs',
};

/** `hosts`; types of other plug-ins are shown by their id. */
function typeName(type: string): string {
  return TYPE_NAMES[type] ?? type;
}

const ANYBODY: readonly FieldEntry[] = [
  { name: 'project', label: 'Project', hint: 'Its id, or name@domain.', isRequired: true },
  {
    name: 'user',
    label: 'User',
    isRequired: true,
    hint: 'The id, or name@domain, of the user of the lease.',
  },
];
const NAME: FieldEntry = { name: 'name', label: 'Name of the lease', maxLength: 80, isRequired: true };
const DATES: readonly FieldEntry[] = [
  {
    name: 'start',
    type: 'datetime-local',
    label: 'Start (UTC)',
    hint: 'Date and time in UTC. Empty: now.',
  },
  {
    name: 'end',
    type: 'datetime-local',
    label: 'End (UTC)',
    isRequired: true,
    hint: 'Date and time in UTC.',
  },
];

export function TryForm({ leaseForm, mistakes, csrf, projects, types }: TryFormProps) {
  const whose: readonly FieldEntry[] =
    projects === undefined
      ? ANYBODY
      : [{ name: 'project', label: 'Project', options: projects.map(([id, text]) => [id, visible(text)]) }];
  const { reservations, ...values } = leaseForm;
  return (
    <ChangeForm action="/try" csrf={csrf}>
      {/* The Enter key activates the first button. */}
      <button type="submit" name="do" value="try" class="unseen" tabIndex={-1} aria-hidden="true">
        Try it
      </button>
      {[[...whose, NAME], DATES].map((fields) => (
        <div class="fields">
          <Fields fields={fields} values={values} mistakes={mistakes} />
        </div>
      ))}
      {reservations.map((reservation, index) => (
        <ReservationFields reservation={reservation} index={index} mistakes={mistakes} />
      ))}
      {mistakes.has('add') && <Message kind="error">{mistakes.get('add')}</Message>}
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

/** `name`: within a reservation. */
interface Entry extends FieldEntry {
  readonly name: ReservationField;
}

const count = (name: ReservationField, label: string, min = '1'): Entry => ({
  name,
  label,
  type: 'number',
  min,
});
const AFFINITY: Entry = {
  name: 'affinity',
  label: 'Affinity',
  options: [
    ['', 'any'],
    ['True', 'all on one host'],
    ['False', 'each on its own host'],
  ],
};
const FIELDS: Readonly<Record<string, readonly Entry[]>> = {
  'physical:host': [count('min', 'Hosts, at least'), count('max', 'Hosts, at most')],
  'virtual:instance': [
    count('amount', 'Instances'),
    count('vcpus', 'vCPUs per instance'),
    count('memory_mb', 'Memory per instance, in MB'),
    count('disk_gb', 'Disk per instance, in GB', '0'),
    AFFINITY,
  ],
  'flavor:instance': [
    count('amount', 'Instances'),
    { name: 'flavor_id', label: 'Id of the flavor' },
    AFFINITY,
  ],
  'virtual:floatingip': [
    count('amount', 'Addresses'),
    { name: 'network_id', label: 'Id of the external network' },
    { name: 'addresses', label: 'Required addresses (optional)', hint: 'Separated by commas.' },
  ],
};
const OTHER_FIELDS: readonly Entry[] = [
  count('amount', 'Amount (optional)'),
  {
    name: 'more',
    label: 'Further attributes (optional)',
    hint: 'An object in JSON, as the plug-in expects.',
  },
];
const PROPERTIES: Entry = {
  name: 'properties',
  label: 'resource_properties',
  rows: 2,
  hint: 'JSON, instead of the fields above: ["and", ["==", "$gpu", "A100"], [">=", "$nvme", "2"]]',
};
const HYPERVISOR: Entry = {
  name: 'hypervisor',
  label: 'hypervisor_properties',
  rows: 2,
  hint: 'JSON, with attributes that Nova reports: [">=", "$vcpus", "16"]',
};

interface ReservationProps {
  readonly reservation: ReservationForm;
  readonly index: number;
  readonly mistakes: Mistakes;
}

function Entries({ entries, ...props }: ReservationProps & { readonly entries: readonly Entry[] }) {
  const { reservation, index, mistakes } = props;
  const fields = entries.map((one) => ({
    ...one,
    name: fieldName(index, one.name),
    value: reservation[one.name],
  }));
  return <Fields fields={fields} mistakes={mistakes} />;
}

function ReservationFields(props: ReservationProps) {
  const { reservation, index } = props;
  const { type } = reservation;
  return (
    <fieldset>
      <legend>
        <Text>{`Reservation ${index + 1}: ${typeName(type)}`}</Text>
      </legend>
      <input type="hidden" name={fieldName(index, 'type')} value={type} />
      <div class="fields">
        <Entries {...props} entries={FIELDS[type] ?? OTHER_FIELDS} />
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

function Properties(props: ReservationProps) {
  const { type, properties, hypervisor } = props.reservation;
  return (
    <>
      <p class="hint">Properties that all hosts must have, such as gpu == A100. Optional.</p>
      {COMPARISONS.map((row) => (
        <div class="fields">
          <Entries
            {...props}
            entries={[
              { name: `p${row}_name`, label: `Property ${row + 1}` },
              {
                name: `p${row}_operator`,
                label: `Comparison ${row + 1}`,
                options: OPERATORS.map((one) => [one, one]),
              },
              { name: `p${row}_value`, label: `Value ${row + 1}` },
            ]}
          />
        </div>
      ))}
      <details open={properties !== '' || hypervisor !== ''}>
        <summary>Properties as Blazar's expression</summary>
        <Entries {...props} entries={type === 'physical:host' ? [PROPERTIES, HYPERVISOR] : [PROPERTIES]} />
      </details>
    </>
  );
}
