// SPDX-License-Identifier: Apache-2.0
// Writes the rows of requests that run once as a C program would: each transaction begins so many
// requests, answers those that the one before has begun, and removes expired ones.
//
//   once-floor FILE SECONDS ROWS RETENTION FULL    ROWS: of a transaction; RETENTION: ms; FULL: 0 or 1
//
// Prints the requests per second.
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static sqlite3 *db;

static void run(const char *sql) {
  char *error = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) {
    fprintf(stderr, "once-floor: %s: %s\n", sql, error);
    exit(1);
  }
}

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
    fprintf(stderr, "once-floor: %s: %s\n", sql, sqlite3_errmsg(db));
    exit(1);
  }
  return statement;
}

static void step(sqlite3_stmt *statement) {
  if (sqlite3_step(statement) != SQLITE_DONE) {
    fprintf(stderr, "once-floor: %s\n", sqlite3_errmsg(db));
    exit(1);
  }
  sqlite3_reset(statement);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

struct request {
  char scope[32];
  int scope_size;
  uint8_t key[16];
  int64_t number;
};

int main(int count, char **arguments) {
  if (count != 6) return 64;
  int seconds = atoi(arguments[2]), rows = atoi(arguments[3]);
  int64_t retention = atoll(arguments[4]);
  if (sqlite3_open(arguments[1], &db) != SQLITE_OK) return 1;
  run("PRAGMA journal_mode = WAL");
  run(atoi(arguments[5]) ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  run("CREATE TABLE records (id INTEGER PRIMARY KEY, scope BLOB NOT NULL, type INTEGER NOT NULL,"
      " key BLOB NOT NULL, number INTEGER NOT NULL, fingerprint BLOB NOT NULL,"
      " state INTEGER NOT NULL, runs INTEGER NOT NULL, expiry INTEGER NOT NULL, code INTEGER,"
      " body BLOB);"
      "CREATE UNIQUE INDEX places ON records (scope, type, key);"
      "CREATE INDEX expiries ON records (expiry) WHERE state <> 0");
  sqlite3_stmt *begin = prepare(
      "INSERT INTO records (scope, type, key, number, fingerprint, state, runs, expiry)"
      " VALUES (?, ?, ?, ?, ?, 0, 1, ?) ON CONFLICT DO NOTHING");
  sqlite3_stmt *complete = prepare(
      "UPDATE records SET state = ?, code = ?, body = ? WHERE scope = ? AND type = ? AND key = ?"
      " AND number = ? AND (state = 0 OR state = 3 AND expiry > ?)");
  sqlite3_stmt *expire = prepare(
      "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE state <> 0 AND expiry <= ?"
      " ORDER BY expiry LIMIT ?)");
  int half = rows / 2 > 0 ? rows / 2 : 1;
  struct request *open = calloc((size_t)half, sizeof *open);
  uint8_t body[64];
  memset(body, 7, sizeof body);
  int64_t start = now(), time, requests = 0;
  int has_open = 0;
  while ((time = now()) < start + seconds * 1000) {
    run("BEGIN IMMEDIATE");
    sqlite3_bind_int64(expire, 1, time);
    sqlite3_bind_int(expire, 2, 2 * rows + 64);
    step(expire);
    for (int i = 0; has_open && i < half; i++) {
      sqlite3_bind_int(complete, 1, 1);
      sqlite3_bind_int(complete, 2, 200);
      sqlite3_bind_blob(complete, 3, body, sizeof body, SQLITE_STATIC);
      sqlite3_bind_blob(complete, 4, open[i].scope, open[i].scope_size, SQLITE_STATIC);
      sqlite3_bind_int(complete, 5, 10);
      sqlite3_bind_blob(complete, 6, open[i].key, sizeof open[i].key, SQLITE_STATIC);
      sqlite3_bind_int64(complete, 7, open[i].number);
      sqlite3_bind_int64(complete, 8, time);
      step(complete);
      requests++;
    }
    for (int i = 0; i < half; i++) {
      struct { uint8_t key[16]; int64_t number; } drawn;
      if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return 1;
      memcpy(open[i].key, drawn.key, sizeof drawn.key);
      open[i].number = drawn.number;
      open[i].scope_size = snprintf(open[i].scope, sizeof open[i].scope, "pprincipal %d", i);
      uint8_t fingerprint[32];
      memcpy(fingerprint, drawn.key, 16);
      memcpy(fingerprint + 16, drawn.key, 16);
      sqlite3_bind_blob(begin, 1, open[i].scope, open[i].scope_size, SQLITE_STATIC);
      sqlite3_bind_int(begin, 2, 10);
      sqlite3_bind_blob(begin, 3, open[i].key, sizeof open[i].key, SQLITE_STATIC);
      sqlite3_bind_int64(begin, 4, open[i].number);
      sqlite3_bind_blob(begin, 5, fingerprint, sizeof fingerprint, SQLITE_STATIC);
      sqlite3_bind_int64(begin, 6, time + retention);
      step(begin);
    }
    has_open = 1;
    run("COMMIT");
  }
  printf("%lld\n", (long long)requests / seconds);
  free(open);
  return 0;
}
