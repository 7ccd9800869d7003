import { listAccounts } from '../../accounts/account-store.ts'
import type { Service } from '../../api/service.ts'
import { canDecrypt } from '../../db/encrypted-values.ts'

type StartupState = Pick<Service, 'database' | 'log' | 'secretBox'> & {
  readonly settings: Pick<Service['settings'], 'plans'>
}

/** Warns at the start of what works otherwise than its operator will think: after a restore, or with another config file. */
export async function logStartupWarnings({
  database,
  log,
  secretBox,
  settings,
}: StartupState): Promise<void> {
  const accounts = await listAccounts(database)
  const orphans = accounts.filter(({ plan }) => !settings.plans.has(plan))
  for (const { id, plan } of orphans.slice(0, NAMED_MAX)) {
    log.warn(
      `there is no plan “${plan}” any more: the account is held to the plan free. Add it to "plans" in the config file, or give the account another with “ev accounts set-plan”`,
      { accountId: id },
    )
  }
  if (await canDecrypt(database, secretBox)) return
  log.warn(
    'the secret is not the one that was there before: secrets of webhooks cannot be read with it, nor answers to Idempotency-Keys. Put back the file “secret” of the data directory, or what EV_SECRET or EV_SECRET_FILE was',
  )
}

/** More say nothing new. */
const NAMED_MAX = 10
