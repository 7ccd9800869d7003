import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { feedbackError } from '../feedback/errors.ts'
import { isProviderName, PROVIDER_NAMES, PROVIDERS } from '../feedback/providers/providers.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm, YES } from './confirm.ts'
import type { CliContext } from './context.ts'
import {
  addOwnedListCommand,
  type DataFlags,
  openBackend,
  ownedObject,
  worksOnData,
} from './data-command.ts'
import { printJson, printText, timeText } from './print.ts'
import {
  type CreatedSource,
  createRemoteSources,
  type OwnedSource,
  type SourcesBackend,
} from './remote/feedback-sources.ts'
import { DATA_SETTINGS } from './settings.ts'
import { type Column, keyValues } from './table.ts'
import { widthOf, wrapLines } from './width.ts'

type CreateFlags = DataFlags & { readonly key?: string }

const openSources = (context: CliContext, flags: DataFlags): Promise<SourcesBackend> =>
  openBackend(context, flags, {
    remote: createRemoteSources,
    loadLocal: async () => (await import('./local/feedback-sources.ts')).createLocalSources,
  })

/** Commands for the URLs to which email providers send events. */
export function addSources(feedback: Command, context: CliContext): void {
  const sources = feedback
    .command('sources')
    .description('manage the URLs to which email providers send bounces and deliveries')
    .addHelpText('after', SOURCES_EXAMPLES)
  addOwnedListCommand(sources, context, {
    noun: 'sources',
    description: 'list feedback sources, oldest first',
    examples: ['ev feedback sources list', 'ev feedback sources --json'],
    settings: ['baseUrl', ...DATA_SETTINGS],
    open: flags => openSources(context, flags),
    table: { columns: COLUMNS, rowOf, none: NO_SOURCES },
  })
  const create = sources
    .command('create')
    .description('create a feedback source and show its URL')
    .argument('<provider>', 'provider: ses, sendgrid, mailgun, postmark or sparkpost')
    .option('--key <key>', 'key that authenticates the provider; - reads it from stdin')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', CREATE_EXAMPLES)
    .action((provider: string, flags) => createSourceCommand(context, provider, flags))
  worksOnData(create, context, ['baseUrl', 'secret', 'secretFile', ...DATA_SETTINGS])
  const remove = sources
    .command('delete')
    .description('delete a feedback source; its feedback is kept')
    .argument('<source>', 'ID of the source')
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev feedback sources delete fbs_4kq2')
    .action((id: string, flags) => deleteSourceCommand(context, id, flags))
  worksOnData(remove, context)
}

const SOURCES_EXAMPLES = `
Examples:
  ev feedback sources
  ev feedback sources create postmark
  ev feedback sources delete fbs_4kq2`

const CREATE_EXAMPLES = `
Examples:
  ev feedback sources create ses --key arn:aws:sns:us-east-1:123456789012:ses-feedback
  ev feedback sources create mailgun --key - < signing-key.txt
  ev feedback sources create postmark

The key is the ARN of the SNS topic (ses), the verification key of the Event Webhook (sendgrid), or the HTTP webhook
signing key (mailgun). For postmark and sparkpost, ev creates a password.`

const NO_SOURCES = 'No feedback sources. To create one, run "ev feedback sources create PROVIDER".'

async function createSourceCommand(
  context: CliContext,
  provider: string,
  flags: CreateFlags,
): Promise<void> {
  if (!isProviderName(provider)) {
    throw new EvError(
      'usage',
      `Unknown provider "${sanitizeText(provider)}". Providers: ${PROVIDER_NAMES.join(', ')}.`,
    )
  }
  const backend = await openSources(context, flags)
  const key = flags.key === '-' ? await text(context.stdin) : flags.key
  const created = await backend.create({ provider, key }, flags.account)
  if (flags.json) printJson(context, ownedObject(created))
  else context.stdout.write(createdText(created, widthOf(context, context.stdout)))
}

async function deleteSourceCommand(
  context: CliContext,
  id: string,
  flags: DataFlags,
): Promise<void> {
  const backend = await openSources(context, flags)
  const source = (await backend.list(undefined)).find(one => one.id === id)
  if (source === undefined) throw feedbackError('feedback_source_not_found', { id })
  const { title } = PROVIDERS[source.provider]
  await confirm(context, flags, `delete the feedback source ${id} of ${title}`)
  await backend.delete(id)
  printText(context, `Deleted feedback source ${id}.`)
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

const rowOf = (source: OwnedSource): string[] => [
  source.id,
  source.account_id,
  source.provider,
  timeText(Date.parse(source.created_at)),
  source.last_received_at === null ? '–' : timeText(Date.parse(source.last_received_at)),
  PROVIDERS[source.provider].key?.isPublic ? source.key_hint : `…${source.key_hint}`,
  source.url,
]

function createdText(created: CreatedSource, width: number | null) {
  const { id, url, basic_auth: auth, account_id: account, provider } = created
  // Without a base URL, the URL is a path.
  const isPath = url.startsWith('/')
  const values = keyValues([
    ['URL', isPath ? `https://HOST${url}` : url],
    ['username', auth?.username ?? null],
    ['password', auth?.password ?? null],
  ])
  const store = auth === null ? '' : '\nStore the password now: ev cannot show it again.\n'
  const host = isPath ? '\nReplace HOST with the public host name of "ev serve".\n' : ''
  const title = `Created feedback source ${id} of account ${account}. Enter these values at ${PROVIDERS[provider].title}:`
  // The values are not wrapped, so that they can be copied.
  return `${wrapLines(title, width)}\n\n${values}${store}${host}`
}
