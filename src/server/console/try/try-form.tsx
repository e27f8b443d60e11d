/** The form of "Try it": a lease in fields. Each type of resource has its own; buttons add and remove reservations without a script. */
import type { Person } from '../../users/person.ts';
import { ChangeForm, Field, LongField, Select } from '../fields.tsx';
import { Text, visible } from '../text.tsx';
import type { Mistakes } from './lease-of-wish.ts';
import {
  comparisonName,
  fieldName,
  MOST_RESERVATIONS,
  type ReservationField,
  type Wish,
  type WishedReservation,
} from './wish.ts';

export interface TryFormProps {
  readonly wish: Wish;
  readonly mistakes: Mistakes;
  readonly csrf: string;
  /** The projects to choose from: id and text; `undefined` = any id may be typed. */
  readonly projects: readonly (readonly [string, string])[] | undefined;
  /** Whether any user may be typed; else it is the person. */
  readonly choosesUser: boolean;
  readonly person: Person;
  /** Types of resources that can be asked for. */
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

export function TryForm(props: TryFormProps) {
  const { wish, mistakes, csrf, projects, choosesUser, types } = props;
  const first = mistakes.keys().next().value;
  const mistake = (name: string) => ({ mistake: mistakes.get(name), hasFocus: name === first });
  return (
    <ChangeForm action="/try" csrf={csrf}>
      {/* The Enter key takes the first button. */}
      <button type="submit" name="do" value="try" class="unseen" tabIndex={-1} aria-hidden="true">
        Try it
      </button>
      <div class="fields">
        {projects === undefined ? (
          <Field
            name="project"
            label="Project"
            hint="Its id, or name@domain."
            value={wish.project}
            isRequired
            {...mistake('project')}
          />
        ) : (
          <Select
            name="project"
            label="Project"
            value={wish.project}
            options={projects.map(([id, text]) => [id, visible(text)] as const)}
            {...mistake('project')}
          />
        )}
        {choosesUser && (
          <Field
            name="user"
            label="User"
            hint="The id, or name@domain, of whoever asks for the lease."
            value={wish.user}
            isRequired
            {...mistake('user')}
          />
        )}
        <Field
          name="name"
          label="Name of the lease"
          value={wish.name}
          maxLength={80}
          isRequired
          {...mistake('name')}
        />
      </div>
      <div class="fields">
        <Field
          name="start"
          type="datetime-local"
          label="Start (UTC)"
          hint="Date and time in UTC. Empty: now."
          value={wish.start}
          {...mistake('start')}
        />
        <Field
          name="end"
          type="datetime-local"
          label="End (UTC)"
          hint="Date and time in UTC."
          value={wish.end}
          isRequired
          {...mistake('end')}
        />
      </div>
      {wish.reservations.map((reservation, index) => (
        <ReservationFields reservation={reservation} index={index} mistake={mistake} />
      ))}
      {mistakes.has('add') && (
        <p class="error" role="alert">
          {mistakes.get('add')}
        </p>
      )}
      {wish.reservations.length < MOST_RESERVATIONS && (
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

type MistakeOf = (name: string) => { readonly mistake: string | undefined; readonly hasFocus: boolean };

interface ReservationProps {
  readonly reservation: WishedReservation;
  readonly index: number;
  readonly mistake: MistakeOf;
}

function ReservationFields(props: ReservationProps) {
  const { reservation, index } = props;
  const { type } = reservation.fields;
  const title = `Reservation ${index + 1}: ${typeName(type)}`;
  return (
    <fieldset>
      <legend>
        <Text>{title}</Text>
      </legend>
      <input type="hidden" name={fieldName(index, 'type')} value={type} />
      <div class="fields">{fieldsOf(props)}</div>
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

function fieldsOf({ reservation: { fields }, index, mistake }: ReservationProps) {
  const one = (field: ReservationField, label: string, hint?: string) => {
    const name = fieldName(index, field);
    return (
      <Field name={name} label={label} {...(hint && { hint })} value={fields[field]} {...mistake(name)} />
    );
  };
  const count = (field: ReservationField, label: string, least = '1') => {
    const name = fieldName(index, field);
    return (
      <Field name={name} label={label} type="number" min={least} value={fields[field]} {...mistake(name)} />
    );
  };
  const affinity = () => {
    const name = fieldName(index, 'affinity');
    return (
      <Select
        name={name}
        label="Affinity"
        value={fields.affinity}
        options={[
          ['', 'no matter'],
          ['True', 'all on one host'],
          ['False', 'each on its own host'],
        ]}
        {...mistake(name)}
      />
    );
  };
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
        one('addresses', 'These addresses', 'May be empty. Separated by commas.'),
      ];
    default:
      return [
        count('amount', 'How many (may be empty)'),
        one('more', 'Further attributes', 'An object in JSON, as the plug-in expects. May be empty.'),
      ];
  }
}

const OPERATORS = ['==', '!=', '>=', '<=', '>', '<'] as const;
const OPERATOR_TEXTS = OPERATORS.map((one) => [one, one] as const);

function Properties({ reservation: { fields, comparisons }, index, mistake }: ReservationProps) {
  const properties = fieldName(index, 'properties');
  const hypervisor = fieldName(index, 'hypervisor');
  const isExpert = fields.properties !== '' || fields.hypervisor !== '';
  return (
    <>
      <p class="hint">Properties that all hosts must have, such as gpu == A100. May be empty.</p>
      {comparisons.map((one, row) => {
        const [name, operator, value] = (['name', 'operator', 'value'] as const).map((part) =>
          comparisonName(index, row, part),
        ) as [string, string, string];
        return (
          <div class="fields">
            <Field name={name} label={`Property ${row + 1}`} value={one.name} {...mistake(name)} />
            <Select
              name={operator}
              label={`Comparison ${row + 1}`}
              value={one.operator}
              options={OPERATOR_TEXTS}
              {...mistake(operator)}
            />
            <Field name={value} label={`Value ${row + 1}`} value={one.value} {...mistake(value)} />
          </div>
        );
      })}
      <details open={isExpert}>
        <summary>Properties as Blazar's expression</summary>
        <LongField
          name={properties}
          label="resource_properties"
          hint={'JSON, instead of the fields above: ["and", ["==", "$gpu", "A100"], [">=", "$nvme", "2"]]'}
          rows={2}
          value={fields.properties}
          {...mistake(properties)}
        />
        {fields.type === 'physical:host' && (
          <LongField
            name={hypervisor}
            label="hypervisor_properties"
            hint={'JSON, of what Nova tells: [">=", "$vcpus", "16"]'}
            rows={2}
            value={fields.hypervisor}
            {...mistake(hypervisor)}
          />
        )}
      </details>
    </>
  );
}
