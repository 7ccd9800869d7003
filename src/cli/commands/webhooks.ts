import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './no-such-command.ts'
import { addWebhookLog } from './webhook-log.ts'

const EXAMPLES = `
Examples:
  ev webhooks
  ev webhooks create --url https://app.example.com/hook --events batch.completed,batch.failed
  ev webhooks test wh_4kq2
  ev webhooks deliveries wh_4kq2 --status failed
  ev webhooks retry dlv_7ab1
  ev webhooks listen

They work while “ev serve” runs, which notices within a second. The secret of a webhook is shown when it is made and
never again.`

export function addWebhooks(ev: Command, context: CliContext, end: EndWith): void {
  const webhooks = ev
    .command('webhooks')
    .description('where events are sent: see, make and try webhooks, and what came of deliveries')
    .addHelpText('after', EXAMPLES)
  addList(webhooks, context, end)
  addShow(webhooks, context, end)
  addCreate(webhooks, context, end)
  addTest(webhooks, context, end)
  addWebhookLog(webhooks, context, end)
  addRotate(webhooks, context, end)
  addSwitch(webhooks, context, end, 'enable', 'send to one again, also what waited for it')
  addSwitch(
    webhooks,
    context,
    end,
    'disable',
    'send nothing to one; what was on its way waits, up to a week',
  )
  addDelete(webhooks, context, end)
  addListen(webhooks, context, end)
}

/** What signs must be opened, or sealed: by the secret of the data directory, or the one that is set. */
const SECRET_SETTINGS = ['secret', 'secretFile', ...DATA_SETTINGS] as const

function addList(webhooks: Command, context: CliContext, end: EndWith): void {
  const list = webhooks
    .command('list', { isDefault: true })
    .description('all of them, the oldest first')
    .allowExcessArguments()
    .option('--account <account>', 'of this account only: its ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev webhooks list\n  ev webhooks --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, webhooks)
      const { listCommand } = await import('../webhooks/list.ts')
      end(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addShow(webhooks: Command, context: CliContext, end: EndWith): void {
  const show = webhooks
    .command('show')
    .description('one with all that is known of it')
    .argument('<webhook>', 'its ID')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev webhooks show wh_4kq2')
    .action(async (id: string, flags) => {
      const { showCommand } = await import('../webhooks/list.ts')
      end(await showCommand(context, id, flags))
    })
  addSettings(show, context, DATA_SETTINGS)
}

function addCreate(webhooks: Command, context: CliContext, end: EndWith): void {
  const create = webhooks
    .command('create')
    .description('make one, and show its secret, this once')
    .requiredOption('--url <url>', 'where events are sent, https')
    .requiredOption('--events <a,b>', 'which ones, or * for all')
    .option('--description <text>', 'what it is for')
    .option('--inactive', 'nothing is sent until “ev webhooks enable”')
    .option('--account <account>', 'ID or name; may be left out where there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks create --url https://app.example.com/hook --events batch.completed,batch.failed
  ev webhooks create --url https://10.0.0.7/hook --events '*' --webhook-allow-ranges 10.0.0.0/8

Events: batch.completed, batch.failed, verification.completed, quota.warning, quota.exceeded.`,
    )
    .action(async flags => {
      const { createCommand } = await import('../webhooks/create.ts')
      end(await createCommand(context, flags))
    })
  addSettings(create, context, ['dns', 'webhookAllowRanges', ...SECRET_SETTINGS])
}

function addTest(webhooks: Command, context: CliContext, end: EndWith): void {
  const test = webhooks
    .command('test')
    .description('send a test event to one, and say what came of it')
    .argument('<webhook>', 'its ID')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks test wh_4kq2
  ev webhooks test wh_4kq2 --json

It is sent once, from this process and by its settings. Exit codes: 0 delivered · 1 not delivered.`,
    )
    .action(async (id: string, flags) => {
      const { testCommand } = await import('../webhooks/test-event.ts')
      end(await testCommand(context, id, flags))
    })
  addSettings(test, context, ['dns', 'webhookAllowRanges', 'webhookCaFile', ...SECRET_SETTINGS])
}

function addRotate(webhooks: Command, context: CliContext, end: EndWith): void {
  const rotate = webhooks
    .command('rotate')
    .description('give one another secret; with the old one is signed beside it for a while')
    .argument('<webhook>', 'its ID')
    .option('--grace <time>', 'how long: 30m, 24h, up to 7d, or 0 (default: 24h)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev webhooks rotate wh_4kq2\n  ev webhooks rotate wh_4kq2 --grace 0',
    )
    .action(async (id: string, flags) => {
      const { rotateCommand } = await import('../webhooks/change.ts')
      end(await rotateCommand(context, id, flags))
    })
  addSettings(rotate, context, SECRET_SETTINGS)
}

function addSwitch(
  webhooks: Command,
  context: CliContext,
  end: EndWith,
  name: 'enable' | 'disable',
  description: string,
): void {
  const command = webhooks
    .command(name)
    .description(description)
    .argument('<webhook>', 'its ID')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', `\nExamples:\n  ev webhooks ${name} wh_4kq2`)
    .action(async (id: string, flags) => {
      const { switchCommand } = await import('../webhooks/change.ts')
      end(await switchCommand(context, id, name === 'enable', flags))
    })
  addSettings(command, context, DATA_SETTINGS)
}

function addDelete(webhooks: Command, context: CliContext, end: EndWith): void {
  const remove = webhooks
    .command('delete')
    .description('remove one for good, and what was on its way to it')
    .argument('<webhook>', 'its ID')
    .addHelpText('after', '\nExamples:\n  ev webhooks delete wh_4kq2')
    .action(async (id: string, flags) => {
      const { deleteCommand } = await import('../webhooks/change.ts')
      end(await deleteCommand(context, id, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
}

function addListen(webhooks: Command, context: CliContext, end: EndWith): void {
  const listen = webhooks
    .command('listen')
    .description('take events on this machine and show them, for development')
    .option('--port <n>', 'where to listen; 0: a free one (default: 8081)')
    .option('--host <ip>', 'address to listen on (default: 127.0.0.1)')
    .option('--status <n>', 'what to answer, to try out retries (default: 200)')
    .option('--no-register', 'make no webhook: check with the secret in EV_WEBHOOK_SECRET')
    .option('--account <account>', 'ID or name; may be left out where there is only one')
    .option('--json', 'print JSON: one line for each event')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks listen
  ev webhooks listen --status 500
  EV_WEBHOOK_SECRET=whsec_… ev webhooks listen --no-register --json | jq .body.data

It makes a webhook for all events of the account, and removes it with Ctrl-C. It takes plain HTTP, which “ev serve”
sends to this machine alone; what it prints first says what “ev serve” needs to reach it.`,
    )
    .action(async flags => {
      const { listenCommand } = await import('../webhooks/listen.ts')
      end(await listenCommand(context, flags))
    })
  addSettings(listen, context, SECRET_SETTINGS)
}
