import { type Command, Option } from 'commander'
import { EVENT_KINDS, SENT_KINDS } from '../../webhooks/event-types.ts'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

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
  addList(webhooks, context, setExitCode)
  addShow(webhooks, context, setExitCode)
  addCreate(webhooks, context, setExitCode)
  addChange(webhooks, context, setExitCode)
  addTest(webhooks, context, setExitCode)
  addWebhookLog(webhooks, context, setExitCode)
  addRotate(webhooks, context, setExitCode)
  addSwitch(
    webhooks,
    context,
    setExitCode,
    'enable',
    'enable a webhook and send its pending deliveries',
  )
  addSwitch(
    webhooks,
    context,
    setExitCode,
    'disable',
    'disable a webhook; pending deliveries wait for up to a week',
  )
  addDelete(webhooks, context, setExitCode)
  addListen(webhooks, context, setExitCode)
}

/** Commands that encrypt or decrypt signing secrets need the service secret. */
const SECRET_SETTINGS = ['secret', 'secretFile', ...DATA_SETTINGS] as const

function addList(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const list = webhooks
    .command('list', { isDefault: true })
    .description('list all webhooks, oldest first')
    .allowExcessArguments()
    .option('--account <account>', 'only webhooks of this account, by ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev webhooks list\n  ev webhooks --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, webhooks)
      const { listCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addShow(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const show = webhooks
    .command('show')
    .description('show a webhook')
    .argument('<webhook>', 'ID of the webhook')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks show wh_4kq2')
    .action(async (id: string, flags) => {
      const { showCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await showCommand(context, id, flags))
    })
  addSettings(show, context, DATA_SETTINGS)
}

function addCreate(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
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
    .action(async flags => {
      const { createCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await createCommand(context, flags))
    })
  addSettings(create, context, ['dns', 'webhookAllowRanges', ...SECRET_SETTINGS])
}

/** `--header`, which may be repeated. */
const headerOption = () =>
  new Option(
    '--header <header>',
    'custom header to send, as "Name: value"; repeat it for several',
  ).argParser(collect)

const collect = (value: string, previous: readonly string[] = []) => [...previous, value]

function addChange(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
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
    .action(async (id: string, flags) => {
      const { changeCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await changeCommand(context, id, flags))
    })
  addSettings(change, context, ['dns', 'webhookAllowRanges', ...SECRET_SETTINGS])
}

function addTest(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const test = webhooks
    .command('test')
    .description('send a test event to a webhook and show the response')
    .argument('<webhook>', 'ID of the webhook')
    .addOption(
      new Option('--event <event>', 'event to send an example of (default: webhook.test)').choices([
        ...SENT_KINDS,
      ]),
    )
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks test wh_4kq2
  ev webhooks test wh_4kq2 --event batch.completed

Example events have "sandbox": true. The event is sent once, from this process and with its settings.

Exit codes: 0 delivered; 1 not delivered.`,
    )
    .action(async (id: string, flags) => {
      const { testCommand } = await import('../webhooks/test-event.ts')
      setExitCode(await testCommand(context, id, flags))
    })
  addSettings(test, context, ['dns', 'webhookAllowRanges', 'webhookCaFile', ...SECRET_SETTINGS])
}

function addRotate(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
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
    .action(async (id: string, flags) => {
      const { rotateCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await rotateCommand(context, id, flags))
    })
  addSettings(rotate, context, SECRET_SETTINGS)
}

function addSwitch(
  webhooks: Command,
  context: CliContext,
  setExitCode: SetExitCode,
  name: 'enable' | 'disable',
  description: string,
): void {
  const command = webhooks
    .command(name)
    .description(description)
    .argument('<webhook>', 'ID of the webhook')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', `\nExamples:\n  ev webhooks ${name} wh_4kq2`)
    .action(async (id: string, flags) => {
      const { switchCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await switchCommand(context, id, name === 'enable', flags))
    })
  addSettings(command, context, DATA_SETTINGS)
}

function addDelete(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const remove = webhooks
    .command('delete')
    .description('delete a webhook and its pending deliveries')
    .argument('<webhook>', 'ID of the webhook')
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev webhooks delete wh_4kq2')
    .action(async (id: string, flags) => {
      const { deleteCommand } = await import('../webhooks/webhooks.ts')
      setExitCode(await deleteCommand(context, id, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
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
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one line per event')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks listen
  ev webhooks listen --status 500
  EV_WEBHOOK_SECRET=whsec_… ev webhooks listen --no-register --json

The command creates a webhook for all events of the account and deletes it on Ctrl-C. It accepts plain HTTP, which
"ev serve" sends to loopback addresses only. It first prints the setting that "ev serve" needs to reach it.`,
    )
    .action(async flags => {
      const { listenCommand } = await import('../webhooks/listen.ts')
      setExitCode(await listenCommand(context, flags))
    })
  addSettings(listen, context, SECRET_SETTINGS)
}

/** Adds the commands that show and retry deliveries. */
function addWebhookLog(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  addDeliveries(webhooks, context, setExitCode)
  addRetry(webhooks, context, setExitCode)
  addRecover(webhooks, context, setExitCode)
}

function addDeliveries(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const deliveries = webhooks
    .command('deliveries')
    .description('list deliveries to a webhook, or show one with its attempts')
    .argument('<webhook>', 'ID of the webhook or of a delivery')
    .argument('[delivery]', 'ID of the delivery')
    .addOption(
      new Option('--status <status>', 'only deliveries with this status').choices([
        ...['pending', 'delivered', 'retry_scheduled', 'failed'],
      ]),
    )
    .option('--event <event>', 'only deliveries of this event, such as batch.completed')
    .option(
      '--search <text>',
      'only deliveries with this text in the body, ID, status code or error',
    )
    .option('--limit <n>', 'number of deliveries, up to 1000 (default: 20)')
    .option('--json', 'print JSON: an array of objects; for one delivery, one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks deliveries wh_4kq2
  ev webhooks deliveries wh_4kq2 --status failed --limit 100
  ev webhooks deliveries dlv_7ab1`,
    )
    .action(async (id: string, delivery: string | undefined, flags) => {
      const { deliveriesCommand } = await import('../webhooks/deliveries.ts')
      setExitCode(await deliveriesCommand(context, id, delivery, flags))
    })
  addSettings(deliveries, context, DATA_SETTINGS)
}

function addRetry(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const retry = webhooks
    .command('retry')
    .description('retry a delivery, with up to six new attempts')
    .argument('<target>', 'ID of the delivery; with --since, ID of the webhook')
    .argument('[delivery]', 'ID of the delivery, if the first argument is its webhook')
    .option('--since <time>', 'retry all deliveries that failed since this time: 2h, 3d, or a date')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks retry dlv_7ab1
  ev webhooks retry --since 2d wh_4kq2`,
    )
    .action(async (id: string, delivery: string | undefined, flags) => {
      const { retryCommand } = await import('../webhooks/retry.ts')
      setExitCode(await retryCommand(context, id, delivery, flags))
    })
  addSettings(retry, context, DATA_SETTINGS)
}

function addRecover(webhooks: Command, context: CliContext, setExitCode: SetExitCode): void {
  const recover = webhooks
    .command('recover')
    .description('retry all deliveries that failed since a time')
    .argument('<webhook>', 'ID of the webhook')
    .requiredOption(
      '--since <time>',
      'retry deliveries that failed since this time: 2h, 3d, or a date such as 2030-01-31',
    )
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks recover wh_4kq2 --since 2d')
    .action(async (id: string, flags) => {
      const { recoverCommand } = await import('../webhooks/retry.ts')
      setExitCode(await recoverCommand(context, id, flags))
    })
  addSettings(recover, context, DATA_SETTINGS)
}
