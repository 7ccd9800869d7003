import { listKeys } from '../../accounts/key-store.ts'
import { KEY_GRACE_MAX_MS, KEY_GRACE_MS, revokeKey, rotateKey } from '../../accounts/keys.ts'
import { HOUR } from '../../platform/clock.ts'
import { selectAccount, withAccounts } from '../accounts.ts'
import { confirm } from '../confirm.ts'
import { auditServices, type CliContext } from '../context.ts'
import { timeText } from '../jobs/time-text.ts'
import { printJson, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { widthOf } from '../width.ts'
import { keyObject, keysText, newKeyObject, newKeyText } from './print.ts'
import { parseGrace } from './times.ts'

export type KeyFlags = {
  readonly account?: string
  readonly grace?: string
  readonly force?: boolean
  readonly yes?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev keys list` and returns the exit code. */
export function listCommand(context: CliContext, flags: KeyFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const selected =
      flags.account === undefined ? accounts : [selectAccount(accounts, flags.account)]
    const keys = (await Promise.all(selected.map(({ id }) => listKeys(database, id)))).flat()
    if (flags.json) printJson(context, keys.map(keyObject))
    else if (keys.length === 0) {
      printText(context, 'No keys. To create one, run "ev keys create --name NAME".')
    } else context.stdout.write(keysText(keys, widthOf(context, context.stdout)))
    return 0
  })
}

/** Runs `ev keys rotate` and returns the exit code. */
export function rotateCommand(context: CliContext, id: string, flags: KeyFlags): Promise<number> {
  const graceMs = parseGrace(flags.grace ?? `${KEY_GRACE_MS / HOUR}h`, KEY_GRACE_MAX_MS)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const services = { ...auditServices(context), database }
    const input = { ...ofAdmin(id), graceMs }
    const { key, text, previousExpiresAt } = await rotateKey(services, input)
    if (flags.json) printJson(context, newKeyObject(key, text))
    else {
      const end =
        graceMs === 0 ? 'is no longer valid' : `stays valid until ${timeText(previousExpiresAt)}`
      const account = selectAccount(accounts, key.accountId)
      printText(context, `${newKeyText(key, account, text)}The old secret ${end}.\n`)
    }
    return 0
  })
}

/** Runs `ev keys revoke` and returns the exit code. */
export function revokeCommand(context: CliContext, id: string, flags: KeyFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const keys = (await Promise.all(accounts.map(one => listKeys(database, one.id)))).flat()
    const found = keys.find(one => one.id === id)
    if (found !== undefined) await confirm(context, flags, `revoke ${id} "${found.name}"`)
    const services = { ...auditServices(context), database }
    const key = await revokeKey(services, { ...ofAdmin(id), isForced: flags.force === true })
    printText(
      context,
      `Revoked ${id} "${key.name}". A running "ev serve" rejects it within a second.\n`,
    )
    return 0
  })
}

const ofAdmin = (keyId: string) => ({ keyId, accountId: null, actor: null })
