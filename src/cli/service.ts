import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { ClientOptions, EvClient } from '../client/client.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { joinWords } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { type CliContext, inCwd } from './context.ts'
import { EvCommand, MachineOption, pathOf, SettingOption } from './ev-command.ts'
import { printMessage } from './print.ts'

/**
 * Commands work on the data of this machine, or with --url on a service through its HTTP API. The
 * options belong to `ev` and precede the command: `ev --url https://ev.example.com keys list`. Some
 * commands have options of their own with these names.
 */

/** The service that a command is sent to. */
type ServiceAddress = {
  readonly url: string
  readonly key: string
  readonly allowHttp: boolean
}

/**
 * The flags of a command that can be sent to a service. `service` is set before the command runs;
 * without it, the command works on this machine.
 */
export type ServiceFlags = { readonly service?: ServiceAddress }

/** The options of `ev`, by their names in commander. */
type ServiceOptions = {
  readonly url?: string
  readonly key?: string
  readonly keyFile?: string
  readonly allowHttp?: boolean
}

/** Adds the options that select a service. */
export function addServiceOptions(ev: Command): void {
  const options = [
    new Option('--url <url>', 'run the command on the service at this URL (default: EV_URL)'),
    new Option('--key <key>', 'API key for the service (default: EV_KEY)'),
    new Option('--key-file <file>', 'file with the API key (default: EV_KEY_FILE)'),
    new Option('--allow-http', 'send the key unencrypted to another machine'),
  ]
  for (const option of options) ev.addOption(option)
}

/**
 * Sets `service` in the flags of a command if --url or EV_URL names one. Throws EvError if the
 * command cannot be sent to a service.
 */
export function selectService(context: CliContext, ev: Command, action: Command): void {
  const options = ev.opts<ServiceOptions>()
  const url = options.url ?? context.env.EV_URL ?? ''
  const keyFlag = options.key === undefined ? '--key-file' : '--key'
  if (url === '' && (options.key ?? options.keyFile) !== undefined) throw withoutUrl(keyFlag)
  const where = action instanceof EvCommand ? action.runsOn : 'machine'
  if (options.url === undefined && where !== 'service') return
  if (url === '') return
  const source = options.url === undefined ? `EV_URL is "${sanitizeText(url)}"` : '--url is set'
  if (where !== 'service') throw notOnService(source, action)
  requireNoSettings(source, action)
  action.setOptionValue('service', {
    url,
    key: readKey(context, options),
    allowHttp: options.allowHttp === true,
  } satisfies ServiceAddress)
}

const notOnService = (source: string, action: Command) =>
  new EvError(
    'usage',
    `${source}, but "${pathOf(action)}" works only on this machine. To run it here, ${HERE}.`,
  )

/** Without the error, the command would run here, which the key shows is not meant. */
const withoutUrl = (flag: string) =>
  new EvError(
    'usage',
    `${flag} is set, but no service. Add --url https://ev.example.com, or to run the command on this machine, omit ${flag}.`,
  )

const HERE = 'omit --url and unset EV_URL'

/** Settings of this machine, and options that only work on it, would have no effect. */
function requireNoSettings(source: string, action: Command): void {
  const given = action.options.filter(
    option =>
      (option instanceof SettingOption || option instanceof MachineOption) &&
      action.getOptionValueSource(option.attributeName()) === 'cli',
  )
  const [first, ...more] = given.map(({ long }) => long ?? '')
  if (first === undefined) return
  const names = more.length === 0 ? `${first} works` : `${joinWords([first, ...more], 'and')} work`
  throw new EvError(
    'usage',
    `${source}, but ${names} only on this machine. Omit ${more.length === 0 ? 'it' : 'them'}, or to run the command here, ${HERE}.`,
  )
}

function readKey(context: CliContext, { key, keyFile }: ServiceOptions): string {
  const { EV_KEY = '', EV_KEY_FILE = '' } = context.env
  if (key !== undefined) {
    if (keyFile !== undefined)
      throw new EvError('usage', 'Options "--key" and "--key-file" exclude each other.')
    printMessage(context, 'warning', KEY_WARNING)
    return key
  }
  const file = keyFile ?? (EV_KEY === '' ? EV_KEY_FILE : '')
  if (file !== '') return readKeyFile(context, file)
  if (EV_KEY !== '') return EV_KEY
  throw new EvError(
    'usage',
    'The service needs an API key. Set EV_KEY in the environment, or --key-file to a file that contains the key.',
  )
}

const KEY_WARNING =
  'Other users of this machine can see the key in --key in the process list. Set EV_KEY in the environment, or --key-file.'

function readKeyFile(context: CliContext, file: string): string {
  try {
    return readFileSync(inCwd(context, file), 'utf8').trim()
  } catch (cause) {
    const why = errorMessage(cause)
    throw new EvError('no_input', `The key file ${file} cannot be read: ${why}.`, { cause })
  }
}

/** Returns a client of the service. Throws EvError if the URL or the key is invalid. */
export async function connectService(
  { url, key, allowHttp }: ServiceAddress,
  options: Pick<ClientOptions, 'sandbox' | 'retries' | 'onAnswer'> = {},
): Promise<EvClient> {
  const { EvClient } = await import('../client/client.ts')
  try {
    return new EvClient({ baseUrl: url, apiKey: key, allowHttp, ...options })
  } catch (cause) {
    const why = errorMessage(cause)
      .replace('baseUrl', '--url')
      .replace('apiKey', 'The key')
      .replace('allowHttp', '--allow-http')
    throw new EvError('usage', why, { cause })
  }
}

/**
 * Returns the account of the key. A key can address only its own account; another one in `account`,
 * an ID or a name, throws EvError.
 */
export async function ownAccount(
  client: EvClient,
  account: string | undefined,
): Promise<{ readonly id: string; readonly name: string }> {
  const own = await client.account.get()
  if (account === undefined || account === own.id || account === own.name) return own
  throw new EvError(
    'usage',
    `The key belongs to account ${own.id} "${sanitizeText(own.name)}" and cannot address account "${sanitizeText(account)}". Use a key of that account.`,
  )
}

/** Returns the items of all pages. */
export async function listAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
