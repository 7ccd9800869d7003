import type { Config } from '../../config/settings.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
import { eventLine, eventText } from '../listen/event-text.ts'
import { register, unregister } from '../listen/registration.ts'
import { type Arrival, checkSignatures, startReceiver } from '../listen/server.ts'
import {
  type ListenFlags,
  type ListenOptions,
  printBanner,
  toListenOptions,
} from '../listen/webhook-input.ts'
import { readConfig } from '../settings.ts'

/** Runs `ev webhooks listen` and returns the exit code. */
export async function listenCommand(context: CliContext, flags: ListenFlags): Promise<number> {
  const config = readConfig(context, flags)
  const input = toListenOptions(flags, context.env)
  const { ended, dispose } = untilEnded(context)
  try {
    return await listen(context, { config, flags, input }, ended)
  } finally {
    dispose()
  }
}

type Parts = {
  readonly config: Config
  readonly flags: ListenFlags
  readonly input: ListenOptions
}

async function listen(
  context: CliContext,
  { config, flags, input }: Parts,
  ended: Promise<number>,
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
    context.stderr.write(printBanner({ url, wish: input, registration }))
    const code = await ended
    if (registration !== null) await unregister(context, config, registration)
    return code
  } finally {
    await receiver.close()
  }
}

async function show(
  context: CliContext,
  arrival: Arrival,
  secrets: readonly string[],
  { isJson, status }: ListenOptions,
): Promise<void> {
  const at = context.clock.now()
  const taken = { arrival, at, status, signatures: await checkSignatures(arrival, secrets) }
  context.stdout.write(isJson ? eventLine(taken) : eventText(taken))
}

type Ending = { readonly ended: Promise<number>; readonly dispose: () => void }

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Resolves with the code to exit with at the first signal, as ending it is how it is used, or when nobody reads what
 * is shown. A second signal ends the process at once.
 */
function untilEnded({ signals, stdout }: CliContext): Ending {
  // Otherwise the process would end there and then, and leave its webhook.
  stdout.removeAllListeners('error')
  const { promise: ended, resolve } = Promise.withResolvers<number>()
  const dispose = () => {
    for (const signal of SIGNALS) signals.off(signal, onSignal)
  }
  const onSignal = () => {
    dispose()
    resolve(0)
  }
  for (const signal of SIGNALS) signals.on(signal, onSignal)
  stdout.on('error', () => resolve(EXIT_CODES.io))
  return { ended, dispose }
}
