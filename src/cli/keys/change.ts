import { newSecret } from '../../account/key.ts'
import { DAY } from '../../base/clock.ts'
import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import type { Account } from '../../store/account/accounts.ts'
import {
  type ApiKey,
  findKey,
  isLastKey,
  listKeys,
  revokeKey,
  rotateKey,
} from '../../store/account/keys.ts'
import { type Database, write } from '../../store/database.ts'
import { chosenAccount, withAccounts } from '../accounts/chosen.ts'
import type { CliContext } from '../context.ts'
import { timeText } from '../jobs/time-text.ts'
import { readConfig } from '../settings/settings.ts'
import { keysObject, keysText, newKeyObject, newKeyText } from './print.ts'
import { graceOf } from './times.ts'

export type KeyFlags = {
  readonly account?: string
  readonly grace?: string
  readonly force?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev keys list`: gives the code to exit with. */
export function listCommand(context: CliContext, flags: KeyFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const asked = flags.account === undefined ? accounts : [chosenAccount(accounts, flags.account)]
    const keys = (await Promise.all(asked.map(({ id }) => listKeys(database, id)))).flat()
    if (flags.json) context.stdout.write(keysObject(keys))
    else if (keys.length === 0) {
      context.stdout.write('There are no keys. “ev keys create --name NAME” makes one.\n')
    } else context.stdout.write(keysText(keys))
    return 0
  })
}

/** `ev keys rotate`: gives the code to exit with. */
export function rotateCommand(context: CliContext, id: string, flags: KeyFlags): Promise<number> {
  const graceMs = graceOf(flags.grace ?? '24h', GRACE_MAX_MS)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const { account } = await keyOf(database, accounts, id)
    const { text, ...secret } = newSecret(context.random, 'live')
    const now = context.clock.now()
    const key = await write(database, trx =>
      rotateKey(trx, account.id, id, { secret, graceMs, now }),
    )
    if (key === null) throw noSuchKey(id)
    if (flags.json) context.stdout.write(newKeyObject(key, text))
    else {
      const end =
        graceMs === 0 ? 'opens nothing any more' : `works until ${timeText(now + graceMs)}`
      context.stdout.write(`${newKeyText(key, account, text)}The text that it had ${end}.\n`)
    }
    return 0
  })
}

/** `ev keys revoke`: gives the code to exit with. */
export function revokeCommand(context: CliContext, id: string, flags: KeyFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const { account, key } = await keyOf(database, accounts, id)
    const now = context.clock.now()
    const isRevoked = await write(database, async trx => {
      if (!flags.force && (await isLastKey(trx, account.id, id, now))) throw lastKey(account, id)
      return revokeKey(trx, account.id, id, now)
    })
    if (!isRevoked) throw noSuchKey(id)
    context.stdout.write(
      `Revoked ${id} “${key.name}”: it opens nothing any more; a running “ev serve” notices within a second.\n`,
    )
    return 0
  })
}

/** As over HTTP. */
const GRACE_MAX_MS = 7 * DAY

async function keyOf(
  database: Database,
  accounts: readonly Account[],
  id: string,
): Promise<{ account: Account; key: ApiKey }> {
  for (const account of accounts) {
    const key = await findKey(database.db, account.id, id)
    if (key !== null) return { account, key }
  }
  throw noSuchKey(id)
}

const lastKey = ({ name }: Account, id: string) =>
  new EvError(
    'usage',
    `${id} is the last key of the account ${cleanText(name)}: nothing and nobody can use the account without it. To revoke it all the same: ev keys revoke ${id} --force`,
  )

const noSuchKey = (id: string) =>
  new EvError('no_input', `There is no key ${cleanText(id)}. “ev keys” lists those there are.`)
