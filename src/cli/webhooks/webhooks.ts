import { type Command, Option } from 'commander'
import type { NewWebhook, WebhookPatch } from '../../client/types.ts'
import { DAY } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { formatNumber } from '../../platform/format.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { sanitizeText } from '../../platform/text.ts'
import {
  DESCRIPTION_LENGTH_MAX,
  SECRET_GRACE_MAX_MS,
  SECRET_GRACE_MS,
} from '../../webhooks/endpoint.ts'
import { EVENT_KINDS, type EventKind, isEventKind } from '../../webhooks/event-types.ts'
import { confirm, YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addOwnedListCommand, type DataFlags, ownedObject, worksOnData } from '../data-command.ts'
import { collect, parseGrace } from '../flag-values.ts'
import { printJson, printText, timeText } from '../print.ts'
import { openWebhooks, SECRET_SETTINGS } from './backend.ts'
import { addDeliveries } from './deliveries.ts'
import { newSecretObject, newSecretText, urlText, WEBHOOK_TABLE, webhookText } from './print.ts'
import { addRecover, addRetry } from './retry.ts'
import { addTest } from './test-event.ts'

const EXAMPLES = `
Examples:
  ev webhooks
  ev webhooks create --url https://app.example.com/hook --events batch.completed,batch.failed
  ev webhooks change wh_4kq2 --header 'Authorization: Bearer 4f9c21'
  ev webhooks test wh_4kq2
  ev webhooks deliveries wh_4kq2 --status failed
  ev webhooks retry dlv_7ab1
  ev webhooks listen

These commands work while "ev serve" runs; changes take effect within a second. ev shows the secret of a webhook once,
when it is created.`

export function defineWebhooks(
  webhooks: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  webhooks.addHelpText('after', EXAMPLES)
  addList(webhooks, context)
  addShow(webhooks, context)
  addCreate(webhooks, context)
  addChange(webhooks, context)
  addTest(webhooks, context, setExitCode)
  addDeliveries(webhooks, context)
  addRetry(webhooks, context)
  addRecover(webhooks, context)
  addRotate(webhooks, context)
  addSwitch(webhooks, context, 'enable', 'enable a webhook and send its pending deliveries')
  addSwitch(
    webhooks,
    context,
    'disable',
    'disable a webhook; pending deliveries wait for up to a week',
  )
  addDelete(webhooks, context)
  addListen(webhooks, context, setExitCode)
}

const addList = (webhooks: Command, context: CliContext): void =>
  addOwnedListCommand(webhooks, context, {
    noun: 'webhooks',
    description: 'list all webhooks, oldest first',
    examples: ['ev webhooks list', 'ev webhooks --json'],
    open: flags => openWebhooks(context, flags),
    table: WEBHOOK_TABLE,
  })

function addShow(webhooks: Command, context: CliContext): void {
  const show = webhooks
    .command('show')
    .description('show a webhook')
    .argument('<webhook>', 'ID of the webhook')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks show wh_4kq2')
    .action((id: string, flags) => showCommand(context, id, flags))
  worksOnData(show, context)
}

async function showCommand(context: CliContext, id: string, flags: DataFlags): Promise<void> {
  const webhook = await (await openWebhooks(context, flags)).get(id)
  if (flags.json) printJson(context, ownedObject(webhook))
  else context.stdout.write(webhookText(context, webhook))
}

type CreateFlags = DataFlags & {
  readonly url: string
  readonly events: string
  readonly description?: string
  readonly header?: readonly string[]
  readonly inactive?: boolean
}

function addCreate(webhooks: Command, context: CliContext): void {
  const create = webhooks
    .command('create')
    .description('create a webhook and show its secret once')
    .requiredOption('--url <url>', 'https URL that receives the events')
    .requiredOption('--events <event,…>', 'events to send, or * for all')
    .option('--description <text>', 'title of the webhook in lists')
    .addOption(headerOption())
    .option('--inactive', 'create the webhook disabled; "ev webhooks enable" enables it')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks create --url https://app.example.com/hook --events batch.completed,batch.failed
  ev webhooks create --url https://10.0.0.7/hook --events '*' --webhook-allow-ranges 10.0.0.0/8
  ev webhooks create --url https://app.example.com/hook --events '*' --header 'Authorization: Bearer 4f9c21'

Events: ${EVENT_KINDS.join(', ')}.`,
    )
    .action(flags => createCommand(context, flags))
  worksOnData(create, context, ['dns', 'webhookAllowRanges', ...SECRET_SETTINGS])
}

/** `--header`, which may be repeated. */
const headerOption = () =>
  new Option(
    '--header <header>',
    'custom header to send, as "Name: value"; repeat it for several',
  ).argParser(collect)

async function createCommand(context: CliContext, flags: CreateFlags): Promise<void> {
  const input: NewWebhook = {
    url: flags.url,
    events: parseEvents(flags.events),
    active: flags.inactive !== true,
    description: parseDescription(flags.description),
    headers: parseHeaders(flags.header),
  }
  const backend = await openWebhooks(context, flags)
  const { webhook, secret } = await backend.create(input, flags.account)
  if (flags.json) printJson(context, newSecretObject(webhook, secret))
  else printText(context, newSecretText(webhook, secret))
}

/** Parses headers in the form of curl: `Name: value`. */
function parseHeaders(values: readonly string[] = []): Record<string, string> {
  const headers = values.map(value => {
    const colon = value.indexOf(':')
    if (colon > 0) return [value.slice(0, colon).trim(), value.slice(colon + 1).trim()] as const
    throw new EvError(
      'usage',
      '--header has no colon; give the name and the value, as in "Authorization: Bearer 4f9c21".',
    )
  })
  return Object.fromEntries(headers)
}

function parseEvents(value: string): EventKind[] {
  const all = [...new Set(value.split(',').map(one => one.trim()))]
  if (all.length === 1 && all[0] === '*') return [...EVENT_KINDS]
  if (all.every(isEventKind)) return all
  const wrong = all.find(one => !isEventKind(one)) ?? ''
  throw new EvError(
    'usage',
    `Unknown event "${sanitizeText(wrong)}". Events: ${EVENT_KINDS.join(', ')}, or * for all.`,
  )
}

function parseDescription(value: string | undefined): string | null {
  const description = value?.trim() ?? null
  if (description === null || description.length <= DESCRIPTION_LENGTH_MAX) return description
  throw new EvError(
    'usage',
    `--description has ${formatNumber(description.length)} characters; it takes up to ${formatNumber(DESCRIPTION_LENGTH_MAX)}.`,
  )
}

type ChangeFlags = DataFlags & {
  readonly url?: string
  readonly events?: string
  readonly description?: string
  readonly header?: readonly string[]
  readonly removeHeader?: readonly string[]
}

function addChange(webhooks: Command, context: CliContext): void {
  const change = webhooks
    .command('change')
    .description('change the URL, events, description or headers of a webhook')
    .argument('<webhook>', 'ID of the webhook')
    .option(
      '--url <url>',
      'https URL that receives the events; with a new origin, all headers are removed',
    )
    .option('--events <event,…>', 'events to send, or * for all')
    .option('--description <text>', 'title of the webhook in lists; an empty text removes it')
    .addOption(headerOption())
    .addOption(
      new Option(
        '--remove-header <name>',
        'custom header to remove; repeat it for several',
      ).argParser(collect),
    )
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks change wh_4kq2 --url https://app.example.com/hook2
  ev webhooks change wh_4kq2 --header 'Authorization: Bearer 4f9c21' --remove-header X-Old-Token

Header values are stored encrypted and are not shown.`,
    )
    .action((id: string, flags) => changeCommand(context, id, flags))
  worksOnData(change, context, ['dns', 'webhookAllowRanges', ...SECRET_SETTINGS])
}

async function changeCommand(context: CliContext, id: string, flags: ChangeFlags): Promise<void> {
  const patch = parseChange(flags)
  const webhook = await (await openWebhooks(context, flags)).update(id, patch)
  if (flags.json) printJson(context, ownedObject(webhook))
  else context.stdout.write(webhookText(context, webhook))
}

function parseChange({
  url,
  events,
  description,
  header,
  removeHeader,
}: ChangeFlags): WebhookPatch {
  const removed = (removeHeader ?? []).map(name => [name, null] as const)
  const headers = { ...Object.fromEntries(removed), ...parseHeaders(header) }
  const change = omitUndefined({
    url,
    events: events === undefined ? undefined : parseEvents(events),
    description: description === undefined ? undefined : parseDescription(description),
    headers: Object.keys(headers).length === 0 ? undefined : headers,
  })
  if (Object.keys(change).length > 0) return change
  throw new EvError(
    'usage',
    'There is nothing to change. Give at least one of --url, --events, --description, --header and --remove-header.',
  )
}

type RotateFlags = DataFlags & { readonly grace?: string }

function addRotate(webhooks: Command, context: CliContext): void {
  const rotate = webhooks
    .command('rotate')
    .description('issue a new secret; both secrets sign during the grace period')
    .argument('<webhook>', 'ID of the webhook')
    .option('--grace <time>', 'grace period: 30m, 24h, up to 7d, or 0 (default: 24h)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev webhooks rotate wh_4kq2\n  ev webhooks rotate wh_4kq2 --grace 0',
    )
    .action((id: string, flags) => rotateCommand(context, id, flags))
  worksOnData(rotate, context, SECRET_SETTINGS)
}

async function rotateCommand(context: CliContext, id: string, flags: RotateFlags): Promise<void> {
  const graceMs = parseGrace(flags.grace ?? `${SECRET_GRACE_MS / DAY}d`, SECRET_GRACE_MAX_MS)
  const backend = await openWebhooks(context, flags)
  const { webhook, secret, previousExpiresAt } = await backend.rotate(id, graceMs)
  if (flags.json) printJson(context, newSecretObject(webhook, secret))
  else {
    const end =
      graceMs === 0
        ? 'is no longer used'
        : `also signs webhook-signature until ${timeText(previousExpiresAt)}; X-EV-Signature uses only the new one`
    printText(context, `${newSecretText(webhook, secret)}The old secret ${end}.\n`)
  }
}

function addSwitch(
  webhooks: Command,
  context: CliContext,
  name: 'enable' | 'disable',
  description: string,
): void {
  const command = webhooks
    .command(name)
    .description(description)
    .argument('<webhook>', 'ID of the webhook')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', `\nExamples:\n  ev webhooks ${name} wh_4kq2`)
    .action((id: string, flags) => switchCommand(context, id, name === 'enable', flags))
  worksOnData(command, context)
}

async function switchCommand(
  context: CliContext,
  id: string,
  active: boolean,
  flags: DataFlags,
): Promise<void> {
  const webhook = await (await openWebhooks(context, flags)).setActive(id, active)
  if (flags.json) printJson(context, ownedObject(webhook))
  else {
    const state = active
      ? 'is enabled. Pending deliveries are sent when they are due'
      : 'is disabled. Nothing is sent to it, and new events are not stored for it'
    printText(context, `Webhook ${id} to ${urlText(webhook)} ${state}.\n`)
  }
}

function addDelete(webhooks: Command, context: CliContext): void {
  const remove = webhooks
    .command('delete')
    .description('delete a webhook and its pending deliveries')
    .argument('<webhook>', 'ID of the webhook')
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev webhooks delete wh_4kq2')
    .action((id: string, flags) => deleteCommand(context, id, flags))
  worksOnData(remove, context)
}

async function deleteCommand(context: CliContext, id: string, flags: DataFlags): Promise<void> {
  const backend = await openWebhooks(context, flags)
  const webhook = await backend.get(id)
  await confirm(context, flags, `delete webhook ${id} to ${urlText(webhook)}`)
  await backend.delete(id)
  printText(
    context,
    `Deleted webhook ${id} to ${urlText(webhook)}. Nothing is sent to it anymore.\n`,
  )
}

function addListen(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const listen = webhooks
    .command('listen')
    .description('receive events on this machine and print them, for development')
    .option('--port <n>', 'port to listen on, or 0 for any free port (default: 8081)')
    .option('--host <ip>', 'address to listen on (default: 127.0.0.1)')
    .option('--status <n>', 'status code of responses, to test retries (default: 200)')
    .option(
      '--no-register',
      'create no webhook; check signatures with the secret in EV_WEBHOOK_SECRET',
    )
    .option(
      '--public-url <url>',
      'URL that forwards to the listener, such as that of a tunnel (default: the listener)',
    )
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one line per event')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks listen
  ev webhooks listen --status 500
  ev --url https://ev.example.com webhooks listen --public-url https://tunnel.example.com
  EV_WEBHOOK_SECRET=whsec_… ev webhooks listen --no-register --json

The command creates a webhook for all events of the account and deletes it on Ctrl-C. It accepts plain HTTP, which
"ev serve" sends to loopback addresses only. It first prints the setting that "ev serve" needs to reach it. A service
on another machine reaches it through a tunnel to its port: set --public-url to the URL of the tunnel.`,
    )
    .action(async flags => {
      const { listenCommand } = await import('./listen.ts')
      setExitCode(await listenCommand(context, flags))
    })
  worksOnData(listen, context, SECRET_SETTINGS)
}
