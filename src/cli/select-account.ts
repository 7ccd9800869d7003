import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

type Named = { readonly id: string; readonly name: string }

/** Returns the account with that ID or name, or the only account if none is named. */
export function selectAccount<A extends Named>(
  accounts: readonly A[],
  idOrName: string | undefined,
): A {
  const [first, second] =
    idOrName === undefined
      ? accounts
      : accounts.filter(({ id, name }) => id === idOrName || name === idOrName)
  if (first === undefined) {
    throw new EvError(
      'no_input',
      `Account ${sanitizeText(idOrName ?? '')} does not exist. To list accounts, run "ev accounts".`,
    )
  }
  if (second === undefined) return first
  const which =
    idOrName === undefined
      ? 'There are several accounts'
      : `Several accounts are named "${sanitizeText(idOrName)}"`
  throw new EvError(
    'usage',
    `${which}. Give the ID of one, such as ${first.id} or ${second.id}. To list accounts, run "ev accounts".`,
  )
}
