/* Tells systemd how a service of Type=notify stands. Without $NOTIFY_SOCKET nothing happens. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/* state: "READY=1", "STOPPING=1". */
void notify_service(const char *state);

#endif
