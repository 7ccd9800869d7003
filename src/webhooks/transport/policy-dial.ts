import { connect, type Socket } from 'node:net'
import { createSecureContext, getCACertificates, connect as tlsConnect } from 'node:tls'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { checkedAddresses, literalOf, nameOf, type UrlPolicy } from '../webhook-url.ts'
import { TransportFault, toFault } from './transport-error.ts'

export type DialOptions = UrlPolicy & { readonly clock: Clock; readonly ca?: string }

/** Dials the host of a URL. Rejects with a PostFault that says why it could not be. */
export type Dial = (to: URL, signal: AbortSignal) => Promise<Socket>

/** For connecting and shaking hands with one address; the next one is tried after it. */
export const CONNECT_TIMEOUT_MS = 10 * SECOND
/** A name has as many addresses as its owner likes. */
const ADDRESSES_MAX = 4

/**
 * Dials the judged addresses of a host, one after the other. They are dialled as they were judged: nothing is looked
 * up in between, so a name cannot change its address after the judgement.
 */
export function policyCheckedDial({ clock, ca, ...urlPolicy }: DialOptions): Dial {
  let context: SecureContext | null = null
  return async (to, signal) => {
    const judged = await checkedAddresses(to.hostname, urlPolicy, signal)
    if ('fault' in judged) throw new TransportFault(judged.code, judged.fault)
    context ??= trusting(ca)
    let fault = new TransportFault('dns_error', 'It has no address.')
    for (const ip of judged.addresses.slice(0, ADDRESSES_MAX)) {
      if (signal.aborted) throw signal.reason
      const dialled = await dialOne({ ip, to, context, clock, signal })
      if (!(dialled instanceof TransportFault)) return dialled
      fault = dialled
    }
    throw fault
  }
}

type SecureContext = ReturnType<typeof createSecureContext>

/** Made once, as reading the well-known authorities takes a while. They include those of NODE_EXTRA_CA_CERTS. */
const trusting = (ca: string | undefined) =>
  createSecureContext({
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
  })

type One = {
  readonly ip: string
  readonly to: URL
  readonly context: SecureContext
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** A connection, or why there is none. */
function dialOne({ ip, to, context, clock, signal }: One): Promise<Socket | TransportFault> {
  const { promise, resolve } = Promise.withResolvers<Socket | TransportFault>()
  const port = to.port === '' ? HTTPS_PORT : Number(to.port)
  const isPlain = to.protocol === 'http:'
  const socket = isPlain
    ? connect({ host: ip, port })
    : tlsConnect({
        host: ip,
        port,
        secureContext: context,
        // Said, as an environment variable can change what is meant when nothing is said.
        rejectUnauthorized: true,
        ALPNProtocols: ['http/1.1'],
        // RFC 6066 §3: addresses are no server names; the certificate is held against the address then.
        ...(literalOf(to.hostname) === null ? { servername: nameOf(to.hostname) } : {}),
      })
  const place = `${ip} port ${port}`
  const giveUp = () =>
    socket.destroy(new TransportFault('timeout', `${place} did not take the connection in time.`))
  const cancel = clock.after(CONNECT_TIMEOUT_MS, giveUp)
  signal.addEventListener('abort', giveUp)
  const end = (outcome: Socket | TransportFault) => {
    cancel()
    signal.removeEventListener('abort', giveUp)
    resolve(outcome)
  }
  socket.setNoDelay(true)
  // It stays, and is deaf after the first: whoever has the connection listens too.
  socket.on('error', error => end(toFault(error, place)))
  socket.once(isPlain ? 'connect' : 'secureConnect', () => end(socket))
  return promise
}

const HTTPS_PORT = 443
