import type { Account } from '../accounts/account-store.ts'
import { changeAccount, parsePlan } from '../accounts/accounts.ts'
import { parseEmail } from '../accounts/email.ts'
import { mergePlans } from '../accounts/plan.ts'
import { presentAccount } from '../accounts/present-account.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { type AccountFlags, selectAccount, withAccounts } from './accounts.ts'
import { auditServices, type CliContext } from './context.ts'
import { printJson, printText } from './print.ts'
import { readConfig } from './settings.ts'

/** Runs `ev accounts set-plan` and returns the exit code. */
export function setPlanCommand(
  context: CliContext,
  idOrName: string,
  plan: string,
  flags: AccountFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const plans = mergePlans(config.plans)
  parsePlan(plan, plans)
  return withAccounts(context, config, async (database, accounts) => {
    const account = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans }
    const changed = await changeAccount(services, { accountId: account.id, plan })
    if (flags.json) printJson(context, presentAccount(changed))
    else {
      printText(
        context,
        `Changed the plan of account ${account.id} "${account.name}" from ${account.plan} to ${plan}. A running "ev serve" applies it within a second.\n`,
      )
    }
    return 0
  })
}

/** Runs `ev accounts set-email` and returns the exit code. */
export function setEmailCommand(
  context: CliContext,
  idOrName: string,
  address: string,
  flags: AccountFlags,
): Promise<number> {
  const email = address === 'none' ? null : parseEmail(address)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
    const account = await changeAccount(services, { accountId, email })
    if (flags.json) printJson(context, presentAccount(account))
    else printText(context, alertAddressText(account))
    return 0
  })
}

const alertAddressText = ({ id, name, email }: Account) =>
  email === null
    ? `Removed the address of account ${id} "${name}". Its alerts go to --notify-to of "ev serve", or to its log.`
    : `Alerts for account ${id} "${name}" now go to ${email}, through the mail server in --notify-smtp of "ev serve".`

/** Runs `ev accounts set-admin` and returns the exit code. */
export function setAdminCommand(
  context: CliContext,
  idOrName: string,
  word: string,
  flags: AccountFlags,
): Promise<number> {
  const isAdmin = parseOnOff(word)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
    const account = await changeAccount(services, { accountId, isAdmin })
    if (flags.json) printJson(context, presentAccount(account))
    else printText(context, accessText(account))
    return 0
  })
}

const accessText = ({ id, name, operator }: Account) =>
  operator === 1
    ? `Account ${id} "${name}" can now manage accounts over HTTP and open the Health page of the dashboard.`
    : `Account ${id} "${name}" can no longer manage accounts over HTTP or open the Health page of the dashboard.`

function parseOnOff(value: string): boolean {
  if (value === 'on' || value === 'off') return value === 'on'
  throw new EvError('usage', `The second argument is "${sanitizeText(value)}"; it takes on or off.`)
}
