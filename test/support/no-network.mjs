// Preloaded by tests: whoever opens a socket or asks the DNS ends the process.
import dgram from 'node:dgram'
import dns from 'node:dns'
import net from 'node:net'

function burglar(what) {
  process.stderr.write(`no-network: ${what}\n`)
  process.exit(99)
}

net.Socket.prototype.connect = () => burglar('a socket')
dgram.createSocket = () => burglar('a datagram')
for (const library of [dns, dns.promises]) {
  for (const name of Object.keys(library)) {
    if (/^(resolve|lookup|reverse)/.test(name)) library[name] = () => burglar(name)
  }
  for (const name of Object.getOwnPropertyNames(library.Resolver.prototype)) {
    if (/^(resolve|reverse)/.test(name)) library.Resolver.prototype[name] = () => burglar(name)
  }
}
