// Shared by the adapters of `ev measure` for packages from npm: reads addresses from stdin and
// writes one JSON object per line. With EV_DNS and EV_SMTP_PORT, the package asks that DNS server,
// and its connections to port 25 go to that port: most packages have no options for a simulator.

import dns from 'node:dns'
import net from 'node:net'
import { createInterface } from 'node:readline'

const { EV_DNS, EV_SMTP_PORT, EV_PARALLEL = '20' } = process.env

if (EV_DNS) {
  dns.setServers([EV_DNS])
  // The lookups of connections ask the operating system otherwise.
  dns.lookup = (host, options, callback) => {
    const done = typeof options === 'function' ? options : callback
    const isAll = typeof options === 'object' && options?.all === true
    if (net.isIP(host) !== 0) return done(null, isAll ? [{ address: host, family: 4 }] : host, 4)
    dns.resolve4(host, (error, [address] = []) => {
      if (error) done(error)
      else if (isAll) done(null, [{ address, family: 4 }])
      else done(null, address, 4)
    })
  }
}

if (EV_SMTP_PORT) {
  const connect = net.Socket.prototype.connect
  net.Socket.prototype.connect = function redirect(...args) {
    const [first] = Array.isArray(args[0]) ? args[0] : args
    if (typeof first === 'object' && first !== null && Number(first.port) === 25) {
      first.port = Number(EV_SMTP_PORT)
      first.lookup ??= dns.lookup
    }
    return connect.apply(this, args)
  }
}

/** Verifies the addresses on stdin, some at a time; `verify` returns a class. */
export async function run(verify) {
  const addresses = []
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() !== '') addresses.push(line.trim())
  }
  const next = addresses.values()
  const work = async () => {
    for (const email of next) {
      const verdict = await verify(email).catch(() => 'unknown')
      process.stdout.write(`${JSON.stringify({ email, class: verdict })}\n`)
    }
  }
  await Promise.all(Array.from({ length: Number(EV_PARALLEL) }, work))
  process.exit(0)
}
