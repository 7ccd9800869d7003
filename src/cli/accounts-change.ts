import type { Account } from '../accounts/account-store.ts'
import { parsePlan, setAdmin, setEmail, setPlan } from '../accounts/accounts.ts'
import { parseEmail } from '../accounts/email.ts'
import { mergePlans } from '../accounts/plan.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { type AccountFlags, accountObject, chosenAccount, print, withAccounts } from './accounts.ts'
import type { CliContext } from './context.ts'
import { readConfig } from './settings.ts'

/** `ev accounts set-plan`: gives the code to exit with. */
export function setPlanCommand(
  context: CliContext,
  given: string,
  plan: string,
  flags: AccountFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const plans = mergePlans(config.plans)
  parsePlan(plan, plans)
  return withAccounts(context, config, async (database, accounts) => {
    const account = chosenAccount(accounts, given)
    const changed = await setPlan({ database, plans }, { accountId: account.id, plan })
    if (flags.json) print(context, accountObject(changed))
    else {
      context.stdout.write(
        `The account ${account.id} “${account.name}” has the plan ${plan} now; it had ${account.plan}. A running “ev serve” goes by it within a second.\n`,
      )
    }
    return 0
  })
}

/** `ev accounts set-email`: gives the code to exit with. */
export function setEmailCommand(
  context: CliContext,
  given: string,
  address: string,
  flags: AccountFlags,
): Promise<number> {
  const email = address === 'none' ? null : parseEmail(address)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const { id: accountId } = chosenAccount(accounts, given)
    const account = await setEmail({ database }, { accountId, email })
    if (flags.json) print(context, accountObject(account))
    else context.stdout.write(`${alertAddressText(account)}\n`)
    return 0
  })
}

const alertAddressText = ({ id, name, email }: Account) =>
  email === null
    ? `The account ${id} “${name}” has no address now: notices about it go to whoever --notify-to names for “ev serve”, else to its log.`
    : `Notices about the account ${id} “${name}” go to ${email} now, by the mail server that --notify-smtp names for “ev serve”.`

/** `ev accounts set-admin`: gives the code to exit with. */
export function setAdminCommand(
  context: CliContext,
  given: string,
  word: string,
  flags: AccountFlags,
): Promise<number> {
  const isAdmin = onOrOff(word)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const { id: accountId } = chosenAccount(accounts, given)
    const account = await setAdmin({ database }, { accountId, isAdmin })
    if (flags.json) print(context, accountObject(account))
    else context.stdout.write(`${whatIsSeen(account)}\n`)
    return 0
  })
}

const whatIsSeen = ({ id, name, operator }: Account) =>
  operator === 1
    ? `Whoever signs in to the dashboard with a key of the account ${id} “${name}” sees how the whole service is now, on the page Health.`
    : `Whoever signs in to the dashboard with a key of the account ${id} “${name}” sees this account alone now.`

/** What people say of something that is there or not. */
function onOrOff(given: string): boolean {
  if (given === 'on' || given === 'off') return given === 'on'
  throw new EvError('usage', `Write on or off after the account, not “${sanitizeText(given)}”.`)
}
