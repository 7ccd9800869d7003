/** Carries events to the webhooks that subscribed to them, as their deliveries fall due. */
export interface Deliveries {
  /** Looks at once for what is due: something was just made due. Otherwise it is found within half a second. */
  wake(): void
  status(): DeliveryStatus
  /** Begins nothing more; resolves when what is under way has come to its end or has been given up. */
  stop(): Promise<void>
}

/** Since the start. */
export type DeliveryStatus = {
  /** Requests under way now. */
  readonly underWay: number
  /** Attempts by what came of them. */
  readonly delivered: number
  readonly retried: number
  readonly failed: number
}
