/** Parts of forms: each field with its label, a hint and what is wrong with it. */
import type { ComponentChildren } from 'preact';
import { Text } from './parts.tsx';

interface Described {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly mistake?: string | undefined;
  /** Whether it has the focus when the page opens: the first mistake. */
  readonly hasFocus?: boolean | undefined;
}

/** `autocomplete="off"` would empty it when somebody goes back to a form that could not be sent: forms that only search have it. */
interface FieldProps extends Described {
  readonly value?: string | undefined;
  /** Default `text`. */
  readonly type?: 'text' | 'search' | 'number' | 'datetime-local' | 'date' | 'password';
  readonly isRequired?: boolean;
  /** Default 255. */
  readonly maxLength?: number;
  /** For numbers and dates. */
  readonly min?: string;
  readonly max?: string;
  readonly step?: string;
  /** Offered while somebody types. */
  readonly suggestions?: readonly string[];
}

export function Field(props: FieldProps) {
  const { name, value = '', type = 'text', isRequired = false, maxLength = 255, suggestions } = props;
  const list = suggestions === undefined ? undefined : `${name}-suggestions`;
  return (
    <Labelled {...props}>
      <input
        id={name}
        name={name}
        // One of the types; those of preact want to know which.
        type={type as 'text'}
        value={value}
        required={isRequired}
        maxLength={type === 'text' || type === 'search' ? maxLength : undefined}
        min={props.min}
        max={props.max}
        step={props.step}
        list={list}
        spellcheck={false}
        {...described(props)}
      />
      {suggestions !== undefined && (
        <datalist id={list}>
          {suggestions.map((one) => (
            <option value={one} />
          ))}
        </datalist>
      )}
    </Labelled>
  );
}

interface SelectProps extends Described {
  readonly value?: string | undefined;
  readonly options: readonly (readonly [value: string, text: string])[];
}

export function Select(props: SelectProps) {
  const { name, value, options } = props;
  return (
    <Labelled {...props}>
      <select id={name} name={name} {...described(props)}>
        {options.map(([one, text]) => (
          <option value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface LongFieldProps extends Described {
  readonly value?: string | undefined;
  readonly rows: number;
  readonly isRequired?: boolean;
}

export function LongField(props: LongFieldProps) {
  const { name, value = '', rows, isRequired = false } = props;
  return (
    <Labelled {...props}>
      <textarea
        id={name}
        name={name}
        rows={rows}
        required={isRequired}
        spellcheck={false}
        {...described(props)}
        // A browser drops the first line break.
        value={`\n${value}`}
      />
    </Labelled>
  );
}

interface LabelledProps extends Described {
  readonly children: ComponentChildren;
}

function Labelled({ name, label, hint, mistake, children }: LabelledProps) {
  return (
    <div>
      <label for={name}>{label}</label>
      {children}
      {hint !== undefined && (
        <small id={`${name}-hint`} class="hint">
          {hint}
        </small>
      )}
      {mistake !== undefined && (
        <small id={`${name}-mistake`} class="mistake">
          <Text>{mistake}</Text>
        </small>
      )}
    </div>
  );
}

function described({ name, hint, mistake, hasFocus }: Described) {
  const ids = [
    mistake === undefined ? [] : `${name}-mistake`,
    hint === undefined ? [] : `${name}-hint`,
  ].flat();
  return {
    'aria-describedby': ids.length === 0 ? undefined : ids.join(' '),
    'aria-invalid': mistake === undefined ? undefined : ('true' as const),
    autofocus: hasFocus === true,
  };
}

interface ChangeFormProps {
  readonly action: string;
  readonly csrf: string;
  readonly children: ComponentChildren;
}

/** A form that changes something, or costs something: it goes to the POST page of `action`. */
export function ChangeForm({ action, csrf, children }: ChangeFormProps) {
  return (
    <form method="post" action={action}>
      <input type="hidden" name="csrf" value={csrf} />
      {children}
    </form>
  );
}

/** A field in a list of fields: a choice if it has options, a text of several lines if it has rows. */
export interface FieldEntry extends FieldProps {
  readonly options?: SelectProps['options'];
  readonly rows?: number;
}

interface FieldsProps {
  readonly fields: readonly FieldEntry[];
  /** What was sent, by name; an entry may have a value of its own. */
  readonly values?: Readonly<Record<string, string>>;
  /** What is wrong, by name: the first one has the focus. */
  readonly mistakes: ReadonlyMap<string, string>;
}

export function Fields({ fields, values = {}, mistakes }: FieldsProps) {
  const first = mistakes.keys().next().value;
  return (
    <>
      {fields.map(({ options, rows, value, ...entry }) => {
        const { name } = entry;
        const props = {
          ...{ ...entry, value: value ?? values[name] },
          ...{ mistake: mistakes.get(name), hasFocus: name === first },
        };
        return options !== undefined ? (
          <Select {...props} options={options} />
        ) : rows !== undefined ? (
          <LongField {...props} rows={rows} />
        ) : (
          <Field {...props} />
        );
      })}
    </>
  );
}

interface SearchFormProps {
  readonly action: string;
  readonly label: string;
  readonly search: string;
  /** Whether the page shows less than everything. */
  readonly isNarrowed: boolean;
  /** Fields that go along. */
  readonly children?: ComponentChildren;
}

export function SearchForm({ action, label, search, isNarrowed, children }: SearchFormProps) {
  return (
    <form method="get" action={action} class="inline" autocomplete="off">
      <label for="search">{label}</label>
      <input id="search" name="search" type="search" value={search} maxLength={255} spellcheck={false} />
      {children}
      <button type="submit">Search</button>
      {isNarrowed && <a href={action}>Show all</a>}
    </form>
  );
}
