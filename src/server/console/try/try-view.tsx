import { Message } from '../message.tsx';
import { TryAnswer, type TryAnswerProps } from './try-answer.tsx';
import { TryForm, type TryFormProps } from './try-form.tsx';

export interface TryViewProps {
  readonly form: TryFormProps;
  /** `undefined` = nothing was tried. */
  readonly answer?: TryAnswerProps | undefined;
  /** Why there is no answer, apart from mistakes at the fields. */
  readonly error?: string | undefined;
}

export function TryView({ form, answer, error }: TryViewProps) {
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
