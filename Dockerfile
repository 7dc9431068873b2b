# One static binary and the certificates of public authorities: no shell, no package
# manager, no root. Every role is a command of it.
FROM golang:1.26.0-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
# The flags of `make reproducible`, so the same bytes for the same VERSION.
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X hookledger/internal/observe.Version=${VERSION}" -o /hookledger .

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /hookledger /hookledger
# A number, so that Kubernetes sees that it is not root. It owns no file here.
USER 65532:65532
ENV HOOKLEDGER_CONFIG=/etc/hookledger/hookledger.yaml
ENTRYPOINT ["/hookledger"]
CMD ["--help"]
