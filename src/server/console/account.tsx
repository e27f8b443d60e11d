/** A project or a user: what Keystone calls it, if that is known, and its id. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { nameText } from '../../filter/account-limits.ts';
import type { Named } from '../../filter/request-names.ts';
import { Text } from './text.tsx';

type Kind = 'project' | 'user';

/** The names that are known for the ids of the page. */
export type NameOf = (kind: Kind, id: string) => Named | undefined;

export const AccountNames = createContext<NameOf>(() => undefined);

export function Account({ kind, id }: { readonly kind: Kind; readonly id: string }) {
  return <NamedId id={id} named={useContext(AccountNames)(kind, id)} />;
}

export function NamedId({ id, named }: { readonly id: string; readonly named: Named | undefined }) {
  return named === undefined ? (
    <Text>{id}</Text>
  ) : (
    <>
      <Text>{nameText(named)}</Text>{' '}
      <small class="id">
        <Text>{id}</Text>
      </small>
    </>
  );
}
