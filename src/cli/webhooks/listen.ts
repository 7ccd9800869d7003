import type { Config } from '../../config/settings.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
import { readConfig } from '../settings.ts'
import { eventLine, eventText } from './event-text.ts'
import {
  type ListenFlags,
  type ListenOptions,
  listenBanner,
  register,
  toListenOptions,
  unregister,
} from './listen-input.ts'
import { checkSignatures, type ReceivedRequest, startReceiver } from './listen-server.ts'

/** Runs `ev webhooks listen` and returns the exit code. */
export async function listenCommand(context: CliContext, flags: ListenFlags): Promise<number> {
  const config = readConfig(context, flags)
  const input = toListenOptions(flags, context.env)
  const { exitCode, dispose } = untilStopped(context)
  try {
    return await listen(context, { config, flags, input }, exitCode)
  } finally {
    dispose()
  }
}

type ListenInput = {
  readonly config: Config
  readonly flags: ListenFlags
  readonly input: ListenOptions
}

async function listen(
  context: CliContext,
  { config, flags, input }: ListenInput,
  exitCode: Promise<number>,
): Promise<number> {
  const secrets = [...(input.secrets ?? [])]
  const receiver = await startReceiver({
    ...{ host: input.host, port: input.port, status: input.status },
    onArrival: arrival => show(context, arrival, secrets, input),
  })
  try {
    const url = `http://${input.urlHost}:${receiver.port}/`
    const account = flags.account
    const registration =
      input.secrets === null ? await register(context, config, { url, account }) : null
    if (registration !== null) secrets.push(registration.secret)
    context.stderr.write(listenBanner({ url, options: input, registration }))
    const code = await exitCode
    if (registration !== null) await unregister(context, config, registration)
    return code
  } finally {
    await receiver.close()
  }
}

async function show(
  context: CliContext,
  arrival: ReceivedRequest,
  secrets: readonly string[],
  { isJson, status }: ListenOptions,
): Promise<void> {
  const at = context.clock.now()
  const received = { arrival, at, status, signatures: await checkSignatures(arrival, secrets) }
  context.stdout.write(isJson ? eventLine(received) : eventText(received))
}

type StopWait = { readonly exitCode: Promise<number>; readonly dispose: () => void }

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Resolves with the exit code: 0 at the first signal, which is the normal way to stop, or an error
 * if stdout is closed. A second signal exits at once.
 */
function untilStopped({ signals, stdout }: CliContext): StopWait {
  // The default listeners would exit at once and leave the webhook behind.
  stdout.removeAllListeners('error')
  const { promise: exitCode, resolve } = Promise.withResolvers<number>()
  const dispose = () => {
    for (const signal of SIGNALS) signals.off(signal, onSignal)
  }
  const onSignal = () => {
    dispose()
    resolve(0)
  }
  for (const signal of SIGNALS) signals.on(signal, onSignal)
  stdout.on('error', () => resolve(EXIT_CODES.io))
  return { exitCode, dispose }
}
