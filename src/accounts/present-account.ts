import { isoTime } from '../platform/format.ts'
import type { Account } from './account-store.ts'

/** Returns the JSON form of an account, for the API and the command line. */
export const presentAccount = ({ id, name, plan, email, operator, created_at }: Account) => ({
  ...{ id, name, plan, email, admin: operator === 1 },
  created_at: isoTime(created_at),
})
