import { isoTime } from '../../engine/result/present.ts'
import type { Account } from '../../store/account/accounts.ts'

/** An account as JSON. */
export const accountObject = ({ id, name, plan, email, created_at }: Account) => ({
  ...{ id, name, plan, email },
  created_at: isoTime(created_at),
})

export const print = (value: unknown) => process.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
