/** Parts of forms: fields with label, hint and mistake. */
import type { ComponentChildren, RenderableProps } from 'preact';
import { Text } from './parts.tsx';

/**
 * A field: a select if it has options, a textarea if it has rows. Only search forms have
 * `autocomplete="off"`, which would clear the fields when a user goes back to a rejected form.
 */
export interface FieldEntry {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  readonly value?: string | undefined;
  /** Default `text`. */
  readonly type?: 'text' | 'number' | 'datetime-local' | 'date';
  readonly isRequired?: boolean;
  /** Default 255. */
  readonly maxLength?: number;
  /** For numbers and dates. */
  readonly min?: string;
  readonly step?: string;
  /** Suggested while the user types. */
  readonly suggestions?: readonly string[];
  readonly options?: readonly (readonly [value: string, text: string])[];
  readonly rows?: number;
}

interface FieldProps extends FieldEntry {
  readonly mistake?: string | undefined;
  /** Whether it has the focus when the page opens: the first mistake. */
  readonly hasFocus?: boolean | undefined;
}

export function Field(props: FieldProps) {
  const { name, label, hint, mistake } = props;
  return (
    <div>
      <label for={name}>{label}</label>
      <Control {...props} />
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

function Control(props: FieldProps) {
  const { name, hint, value = '', type = 'text', isRequired = false, mistake, hasFocus = false } = props;
  const ids = [mistake !== undefined && `${name}-mistake`, hint !== undefined && `${name}-hint`];
  const common = {
    id: name,
    name,
    autofocus: hasFocus,
    'aria-describedby': ids.filter(Boolean).join(' ') || undefined,
    'aria-invalid': mistake === undefined ? undefined : ('true' as const),
  };
  const { options, rows, suggestions, maxLength = 255, min, step } = props;
  if (options !== undefined) {
    return (
      <select {...common}>
        {options.map(([one, text]) => (
          <option value={one} selected={one === value}>
            {text}
          </option>
        ))}
      </select>
    );
  }
  if (rows !== undefined) {
    // Browsers drop the first line break.
    return <textarea {...common} rows={rows} required={isRequired} spellcheck={false} value={`\n${value}`} />;
  }
  const list = suggestions === undefined ? undefined : `${name}-suggestions`;
  return (
    <>
      <input
        {...common}
        // One of the types: preact's types require a literal.
        type={type as 'text'}
        value={value}
        required={isRequired}
        maxLength={type === 'text' ? maxLength : undefined}
        min={min}
        step={step}
        list={list}
        spellcheck={false}
      />
      {suggestions !== undefined && (
        <datalist id={list}>
          {suggestions.map((one) => (
            <option value={one} />
          ))}
        </datalist>
      )}
    </>
  );
}

interface FieldsProps {
  readonly fields: readonly FieldEntry[];
  /** The submitted values by name; an entry may have its own value. */
  readonly values?: Readonly<Record<string, string>>;
  /** The mistakes by name: the first one has the focus. */
  readonly mistakes?: ReadonlyMap<string, string>;
}

export function Fields({ fields, values = {}, mistakes = new Map() }: FieldsProps) {
  const first = mistakes.keys().next().value;
  return (
    <>
      {fields.map(({ name, value = values[name], ...entry }) => (
        <Field {...entry} name={name} value={value} mistake={mistakes.get(name)} hasFocus={name === first} />
      ))}
    </>
  );
}

/** A form that changes or costs something: sent to the POST page of `action`. */
export function ChangeForm({ action, csrf, children }: RenderableProps<{ action: string; csrf: string }>) {
  return (
    <form method="post" action={action}>
      <input type="hidden" name="csrf" value={csrf} />
      {children}
    </form>
  );
}

interface SearchFormProps {
  readonly action: string;
  readonly label: string;
  readonly search: string;
  readonly isNarrowed: boolean;
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
