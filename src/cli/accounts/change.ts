import { type Account, setEmail, setOperator, setPlan } from '../../store/account/accounts.ts'
import { write } from '../../store/database.ts'
import type { CliContext } from '../context.ts'
import { readConfig } from '../settings/settings.ts'
import type { AccountFlags } from './accounts.ts'
import { chosenAccount, withAccounts } from './chosen.ts'
import { emailOrNone } from './email.ts'
import { onOrOff } from './on-or-off.ts'
import { checkedPlan } from './plan.ts'
import { accountObject, print } from './print.ts'

/** `ev accounts set-plan`: gives the code to exit with. */
export function setPlanCommand(
  context: CliContext,
  given: string,
  plan: string,
  flags: AccountFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  checkedPlan(plan, config)
  return withAccounts(context, config, async (database, accounts) => {
    const account = chosenAccount(accounts, given)
    await write(database, trx => setPlan(trx, account.id, plan))
    if (flags.json) print(context, accountObject({ ...account, plan }))
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
  const email = emailOrNone(address)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const account = chosenAccount(accounts, given)
    await write(database, trx => setEmail(trx, account.id, email))
    if (flags.json) print(context, accountObject({ ...account, email }))
    else context.stdout.write(`${whoIsTold({ ...account, email })}\n`)
    return 0
  })
}

const whoIsTold = ({ id, name, email }: Account) =>
  email === null
    ? `The account ${id} “${name}” has no address now: notices about it go to whoever --notify-to names for “ev serve”, else to its log.`
    : `Notices about the account ${id} “${name}” go to ${email} now, by the mail server that --notify-smtp names for “ev serve”.`

/** `ev accounts set-operator`: gives the code to exit with. */
export function setOperatorCommand(
  context: CliContext,
  given: string,
  word: string,
  flags: AccountFlags,
): Promise<number> {
  const operator = onOrOff(word)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const account = chosenAccount(accounts, given)
    await write(database, trx => setOperator(trx, account.id, operator))
    const changed = { ...account, operator: operator ? 1 : 0 }
    if (flags.json) print(context, accountObject(changed))
    else context.stdout.write(`${whatIsSeen(changed)}\n`)
    return 0
  })
}

const whatIsSeen = ({ id, name, operator }: Account) =>
  operator === 1
    ? `Whoever signs in to the dashboard with a key of the account ${id} “${name}” sees how the whole service is now, on the page Health.`
    : `Whoever signs in to the dashboard with a key of the account ${id} “${name}” sees this account alone now.`
