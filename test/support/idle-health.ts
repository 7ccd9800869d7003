import type { HealthSource } from '../../src/dashboard/health/source.ts'

/** The health of an idle service without problems. */
export const idleHealth = (): HealthSource => ({
  doctorChecks: () => ({ checks: [], at: null, isRunning: false, fault: null }),
  rerunChecks: () => {},
  machine: () => ({ state: 'ready', dns: 'ok', smtp: 'ok', problems: [] }),
  operators: () => ({ egresses: [], shown: [], left: 0 }),
  queue: () => ({ jobs: 0, waiting: 0, running: 0 }),
  workers: async () => ({
    concurrency: 200,
    requestsInFlight: 0,
    deliveriesOpen: 0,
    noticesOpen: 0,
  }),
  members: async () => [],
  peerBlocks: async () => [],
  process: async () => ({
    version: '0.0.0',
    upMs: 0,
    memoryBytes: 0,
    databaseBytes: null,
    freeBytes: null,
  }),
  alert: () => null,
})
