import { text } from 'node:stream/consumers'
import { isProviderName, PROVIDER_NAMES, PROVIDERS } from '../feedback/providers/providers.ts'
import { type FeedbackSource, findSource, listSources } from '../feedback/source-store.ts'
import {
  type CreatedSource,
  createSource,
  deleteSource,
  presentCreatedSource,
  presentSource,
  sourceNotFound,
} from '../feedback/sources.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm } from './confirm.ts'
import type { CliContext } from './context.ts'
import { auditServices } from './database.ts'
import { withAccounts } from './local/with-accounts.ts'
import { printJson, printText, timeText } from './print.ts'
import { selectAccount } from './select-account.ts'
import { serviceSecretBox } from './service-secret.ts'
import { readConfig } from './settings.ts'
import { type Column, keyValues, table } from './table.ts'
import { widthOf, wrapLines } from './width.ts'

export type SourceFlags = {
  readonly account?: string
  readonly key?: string
  readonly json?: boolean
  readonly yes?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev feedback sources list` and returns the exit code. */
export function listSourcesCommand(context: CliContext, flags: SourceFlags): Promise<number> {
  const config = readConfig(context, flags)
  const baseUrl = config.baseUrl ?? ''
  return withAccounts(context, config, async ({ reader }, accounts) => {
    const selected =
      flags.account === undefined ? accounts : [selectAccount(accounts, flags.account)]
    const sources = (await Promise.all(selected.map(({ id }) => listSources(reader, id)))).flat()
    const rows = sources.map(source => rowOf(source, baseUrl))
    if (flags.json) {
      printJson(
        context,
        sources.map(source => sourceObject(source, baseUrl)),
      )
    } else if (sources.length === 0) {
      printText(
        context,
        'No feedback sources. To create one, run "ev feedback sources create PROVIDER".',
      )
    } else context.stdout.write(table(COLUMNS, rows, widthOf(context, context.stdout)))
    return 0
  })
}

/** Runs `ev feedback sources create` and returns the exit code. */
export function createSourceCommand(
  context: CliContext,
  provider: string,
  flags: SourceFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  if (!isProviderName(provider)) {
    throw new EvError(
      'usage',
      `Unknown provider "${sanitizeText(provider)}". Providers: ${PROVIDER_NAMES.join(', ')}.`,
    )
  }
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, flags.account)
    const key = flags.key === '-' ? await text(context.stdin) : flags.key
    const secretBox = await serviceSecretBox(context, config, database)
    const services = { ...auditServices(context), database, secretBox }
    const created = await createSource(services, { accountId, provider, key })
    if (flags.json) printJson(context, createdObject(created, config.baseUrl ?? ''))
    else
      context.stdout.write(createdText(created, config.baseUrl, widthOf(context, context.stdout)))
    return 0
  })
}

/** Runs `ev feedback sources delete` and returns the exit code. */
export function deleteSourceCommand(
  context: CliContext,
  id: string,
  flags: SourceFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const source = (await findSource(database, id)) ?? sourceNotFound(id)
    const title = PROVIDERS[source.provider].title
    await confirm(context, flags, `delete the feedback source ${source.id} of ${title}`)
    await deleteSource({ ...auditServices(context), database }, { id, accountId: null })
    printText(context, `Deleted feedback source ${source.id}.`)
    return 0
  })
}

const sourceObject = (source: FeedbackSource, baseUrl: string) => {
  const { id, ...rest } = presentSource(source, baseUrl)
  return { id, account_id: source.account_id, ...rest }
}

const createdObject = (created: CreatedSource, baseUrl: string) => {
  const { id, ...rest } = presentCreatedSource(created, baseUrl)
  return { id, account_id: created.source.account_id, ...rest }
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: 'PROVIDER' },
  { title: 'CREATED', dropRank: 1 },
  { title: 'LAST REQUEST', dropRank: 4 },
  { title: 'KEY', dropRank: 3 },
  { title: 'URL' },
]

const rowOf = (source: FeedbackSource, baseUrl: string): string[] => [
  source.id,
  source.account_id,
  source.provider,
  timeText(source.created_at),
  source.last_received_at === null ? '–' : timeText(source.last_received_at),
  PROVIDERS[source.provider].key?.isPublic ? source.key_hint : `…${source.key_hint}`,
  presentSource(source, baseUrl).url,
]

function createdText(created: CreatedSource, baseUrl: string | null, width: number | null) {
  const { id, url, basic_auth: auth } = presentCreatedSource(created, baseUrl ?? '')
  const { account_id: account, provider } = created.source
  const values = keyValues([
    ['URL', baseUrl === null ? `https://HOST${url}` : url],
    ['username', auth?.username ?? null],
    ['password', auth?.password ?? null],
  ])
  const store = auth === null ? '' : '\nStore the password now: ev cannot show it again.\n'
  const host = baseUrl === null ? '\nReplace HOST with the public host name of "ev serve".\n' : ''
  const title = `Created feedback source ${id} of account ${account}. Enter these values at ${PROVIDERS[provider].title}:`
  // The values are not wrapped, so that they can be copied.
  return `${wrapLines(title, width)}\n\n${values}${store}${host}`
}
