import type { LogEvent } from '../platform/log.ts'
import type { MetricInfo } from '../platform/metric.ts'

/** Log events of the engine. */
export const ENGINE_LOG = {
  portBlocked: {
    level: 'warn',
    message:
      'No mail server can be reached on port …: outbound port … is probably blocked. Run "ev doctor" to check. ev keeps retrying; until then, addresses end as unknown (no_connect).',
    fields: ['egress'],
  },
  portIntercepted: {
    level: 'warn',
    message:
      'Something on the network answers on port … instead of the mail servers. Run "ev doctor" to check. ev keeps checking; until then, addresses end as unknown (no_connect).',
    fields: ['egress', 'host'],
  },
  portReachable: {
    level: 'info',
    message: 'Mail servers are reachable again on port ….',
    fields: ['egress'],
  },
  connectionRejected: {
    level: 'warn',
    message: 'mail server rejected the connection',
    fields: ['host', 'kind', 'why', 'code'],
  },
  dnsCheckFailed: {
    level: 'warn',
    message: 'DNS check failed: …',
    fields: [],
  },
  dnsCheckPassed: {
    level: 'info',
    message: 'The DNS server passes the check again; its answers are trusted.',
    fields: [],
  },
  verificationFailed: { level: 'error', message: 'verification failed', fields: ['error'] },
  gravatarPaused: {
    level: 'warn',
    message: 'Gravatar is not asked for an hour',
    fields: ['why', 'status'],
  },
  onStepFailed: { level: 'warn', message: 'onStep callback failed', fields: ['error'] },
  cacheNotRead: { level: 'warn', message: 'result cache read failed', fields: ['error'] },
  cacheNotWritten: { level: 'warn', message: 'result cache write failed', fields: ['error'] },
  learnedRepliesNotRead: {
    level: 'warn',
    message: 'learned replies could not be read',
    fields: ['error'],
  },
  witnessesNotRead: {
    level: 'warn',
    message: 'recipients that servers accepted lately could not be read',
    fields: ['error'],
  },
} as const satisfies Readonly<Record<string, LogEvent>>

/** Metrics of the engine, read by `api/metrics.ts`. docs/metrics.md lists them. */
export const ENGINE_METRICS = {
  portReachable: {
    name: 'ev_smtp_port_reachable',
    help: '1 if mail servers are reachable on the SMTP port (25) from an egress, 0 if none is; none before the first connection',
    labelNames: ['egress'],
  },
  connections: {
    name: 'ev_smtp_connections',
    help: 'Open connections to mail servers, by egress',
    labelNames: ['egress'],
  },
  operatorsBlocking: {
    name: 'ev_operators_blocking',
    help: 'Operators that block an egress now: 1 for each known one, and the number of all others as "other"',
    labelNames: ['egress', 'operator'],
  },
  dnsCheckFailed: {
    name: 'ev_dns_check_failed',
    help: '1 while the DNS server fails its check and lists wait, otherwise 0',
  },
} as const satisfies Readonly<Record<string, MetricInfo>>
