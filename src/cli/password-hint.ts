import { hasPassword } from '../config/password.ts'
import type { CliContext } from './context.ts'

/** Flags that take the URL of a database, as commander names them, and where the same may stand unseen. */
const PLACES = { database: '--database', to: '--to' } as const

/** Says on stderr that a password is seen by others, where a flag holds one. It is taken all the same. */
export function hintAtPassword(
  context: CliContext,
  flags: Readonly<Record<string, unknown>>,
): void {
  for (const [key, flag] of Object.entries(PLACES)) {
    const given = flags[key]
    if (typeof given === 'string' && hasPassword(given)) context.stderr.write(hintFor(flag))
  }
}

const hintFor = (flag: string) =>
  `ev: Whoever may list the processes of this machine sees the password in ${flag}. Give the URL as EV_DATABASE in the ` +
  'environment or as "database" in the config file, or the password alone as PGPASSWORD or in ~/.pgpass.\n'
