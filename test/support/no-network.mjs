// Preloaded by tests: opening a socket or resolving a name ends the process.
import dgram from 'node:dgram'
import dns from 'node:dns'
import net from 'node:net'

function denyAccess(what) {
  process.stderr.write(`no-network: ${what}\n`)
  process.exit(99)
}

net.Socket.prototype.connect = () => denyAccess('a socket')
dgram.createSocket = () => denyAccess('a datagram')
for (const library of [dns, dns.promises]) {
  for (const name of Object.keys(library)) {
    if (/^(resolve|lookup|reverse)/.test(name)) library[name] = () => denyAccess(name)
  }
  for (const name of Object.getOwnPropertyNames(library.Resolver.prototype)) {
    if (/^(resolve|reverse)/.test(name)) library.Resolver.prototype[name] = () => denyAccess(name)
  }
}
