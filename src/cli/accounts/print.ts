import type { Account } from '../../accounts/account-store.ts'
import { isoTime } from '../../engine/verdict/present-result.ts'
import type { CliContext } from '../context.ts'

/** An account as JSON. */
export const accountObject = ({ id, name, plan, email, operator, created_at }: Account) => ({
  ...{ id, name, plan, email, admin: operator === 1 },
  created_at: isoTime(created_at),
})

export const print = (context: CliContext, value: unknown) =>
  context.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
